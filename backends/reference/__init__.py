"""The NumPy reference: executes a StepProgram directly; the oracle of every other backend."""
