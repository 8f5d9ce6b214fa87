"""The three languages of the compiler, Graph, StepProgram and Plan: their shapes, verifiers and text forms."""
