"""Predicted cycles of every superstep."""
