"""Files and Python objects -> Graph."""
