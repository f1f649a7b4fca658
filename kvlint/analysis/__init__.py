"""What the code means for a room: the IR, the interpreter, transition tables, paths and facts."""
