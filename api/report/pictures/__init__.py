"""Pictures of a plan and their data, one picture a file."""
