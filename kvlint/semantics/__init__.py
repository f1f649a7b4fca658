"""What names mean: imports, classes and constants across files."""
