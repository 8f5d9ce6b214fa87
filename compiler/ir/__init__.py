"""The compiler's three representations, Graph, StepProgram and Plan: shapes, verifiers and text forms."""
