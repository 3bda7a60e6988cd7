"""The numbers by which the host and the kernels speak of cells and transforms; nothing here needs Triton."""

# How many planes a cell has, all of which are saved for the way back; `cells.py` says what they are.
PLANES = {"rnn": 1, "lstm": 4, "peephole": 4, "gru": 4, "rac": 2, "mgu": 2, "reset_before": 3}

# The first number of a transform's code; `chain.py` has the others.
MULTIPLY, ADD, ZONEOUT, CENTROIDS = range(4)
