"""Pictures of a plan, one module per picture, and their data."""
