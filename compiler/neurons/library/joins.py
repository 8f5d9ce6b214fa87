"""Populations that join the spikes of a block of layers with those that bypass it."""

from __future__ import annotations

from typing import Final

from snnc.compiler.neurons.neuron import NeuronModel, neuron

BLOCK: Final = "block"
SHORTCUT: Final = "shortcut"


def JoinAnd() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Spike where both do: ``s = block * shortcut``, SpikingJelly's ``cnf="AND"``."""
    return neuron("JoinAnd", inputs=(BLOCK, SHORTCUT), equations=f"s = {BLOCK} * {SHORTCUT}")


def JoinIAnd() -> NeuronModel:  # noqa: N802 - named like the neurons
    """Spike where the shortcut does and the block does not: ``s = (1 - block) * shortcut``, SpikingJelly's ``cnf="IAND"``."""
    return neuron("JoinIAnd", inputs=(BLOCK, SHORTCUT), equations=f"s = (1 - {BLOCK}) * {SHORTCUT}")
