"""Number of learned values of a layer: values for each neuron, and values shared by all neurons."""

from __future__ import annotations

from typing import NamedTuple

from snnc.compiler.tiles.mapped.network import Layer


class LearnedRows(NamedTuple):
    """Number of values per neuron of a learned parameter, and whether they are float16."""

    rows: int
    half: bool


def learned_parameters(layer: Layer) -> list[LearnedRows]:
    """Return every learned parameter with values for each neuron: a value per input for a dense connection, else one value."""
    links = [
        LearnedRows(link.inputs if link.dense else 1, link.half)
        for link in layer.incoming
        if link.weight_gradient and link.indexed is None and (link.dense or link.weight_elements > 1)
    ]
    return links + [LearnedRows(1, False)] * layer.learnable_neuron_parameters


def learned_rows(layer: Layer) -> list[int]:
    """Return the number of values per neuron of each of the :func:`learned_parameters`."""
    return [parameter.rows for parameter in learned_parameters(layer)]


def half_elements(layer: Layer) -> int:
    """Return the number of learned float16 values per neuron."""
    return sum(parameter.rows for parameter in learned_parameters(layer) if parameter.half)


def learned_scalars(layer: Layer) -> int:
    """Return the number of learned parameters with one value for all neurons."""
    return layer.learnable_scalars + sum(link.weight_gradient and link.one_to_one and link.weight_elements == 1 for link in layer.incoming)
