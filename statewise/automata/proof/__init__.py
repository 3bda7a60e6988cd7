"""The proof that a soft network follows its automaton on words of every length, up to a certified temperature."""
