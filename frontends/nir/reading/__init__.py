"""Read NIR files into flattened, checked NIR graphs."""
