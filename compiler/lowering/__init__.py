"""Graph -> StepProgram: the operations of one time step, forward and backward."""
