"""Networks written in Python."""
