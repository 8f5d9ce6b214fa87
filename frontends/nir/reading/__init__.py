"""NIR files -> flat, checked NIR graphs."""
