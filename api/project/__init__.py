"""The project folder: the model as data, its options, its trained weights, and whether its program may run."""
