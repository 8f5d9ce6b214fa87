"""Undo the unrolling of a network in time: recover one step from the nodes of all steps."""
