"""Final check of an import: the recovered graph must compute the same values as the file."""
