"""Search for a placement: layouts of candidates, and their predicted cycles and bytes."""
