"""One module per rule, found by its file name; rules know the facts of a file and nothing of each other."""
