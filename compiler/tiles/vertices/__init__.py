"""The vertices of a plan: their codelets, fields and costs."""
