"""The three intermediate representations, Graph, StepProgram and Plan, with their shapes, checks and text forms."""
