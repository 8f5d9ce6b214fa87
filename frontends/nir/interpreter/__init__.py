"""Reference interpreter of NIR files."""
