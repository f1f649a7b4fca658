"""Search strategies, one per file, and the verdicts that may be drawn from them."""
