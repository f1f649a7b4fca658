"""Tests of the interpreter, of what it is made of, and of the facts below it."""
