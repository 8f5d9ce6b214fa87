"""Readers of the official files of data sets, one module per format."""
