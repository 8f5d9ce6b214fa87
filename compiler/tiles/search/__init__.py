"""Search for a placement: layouts of candidate placements, with predicted cycles and bytes."""
