"""The project folder: the model as data, its options, its trained weights, and the trust in its program."""
