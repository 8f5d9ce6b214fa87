"""Readers of the official files of data sets, a format each."""
