"""Where bytes come from: files, their text, and the comments that silence findings."""
