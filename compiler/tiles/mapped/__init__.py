"""Description of a network for the mapping: populations, connections, losses, and operations of equations."""
