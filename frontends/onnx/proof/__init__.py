"""The last check of an import: the recovered graph and the file compute the same values."""
