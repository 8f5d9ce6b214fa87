"""The Jinja templates, one folder a target; this package holds no code."""
