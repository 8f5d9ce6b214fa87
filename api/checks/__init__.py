"""Checks: comparison with other implementations, activity on data, memory estimates, and the tools of this machine."""
