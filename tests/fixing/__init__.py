"""Tests of the edits, the fixpoint, the writing and the diff."""
