"""Graph -> NIR file."""
