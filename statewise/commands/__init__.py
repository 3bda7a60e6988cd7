"""What a person can type: one file a command, each with a parser and a function that runs it."""
