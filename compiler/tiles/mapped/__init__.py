"""Description of a network for the mapper: populations, connections, loss, and the cost of operations."""
