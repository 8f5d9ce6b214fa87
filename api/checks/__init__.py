"""What snnc understood of a model, how far it agrees with other implementations, and what the model does on data."""
