"""How a drill is told."""
