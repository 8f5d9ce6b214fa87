"""Read NIR files as flat, checked NIR graphs."""
