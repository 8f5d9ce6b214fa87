"""From the nodes of all time steps to one step."""
