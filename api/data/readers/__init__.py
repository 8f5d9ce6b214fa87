"""Readers of the official files of data sets, one per format."""
