"""The network as it is mapped: populations, connections, losses, and the operations of their equations."""
