"""Lowering of graphs to step programs: the operations of one time step, forward and backward."""
