"""Carrying out the plans of findings: edits of text, their fixpoint, atomic writing and diffs."""
