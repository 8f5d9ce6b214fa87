"""Pictures of a plan and their data, one picture per file."""
