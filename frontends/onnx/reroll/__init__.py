"""Re-roll the nodes of all time steps into one step."""
