"""Variables and vertices of parameters: the optimiser, gradient norms, copies of weights."""
