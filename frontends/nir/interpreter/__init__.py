"""A reference interpreter of NIR files."""
