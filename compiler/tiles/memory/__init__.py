"""Predicted memory of blocks on tiles, and lifetimes of data."""
