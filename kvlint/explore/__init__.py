"""Running a tree's real backend under every thread schedule, and showing the one that hangs."""
