"""Plan -> project -> session."""
