"""Node types of NIR 1.0.8, and their fields in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from snnc.compiler.ir.graph import Array

TYPES: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "Input": (("shape",), ()),
    "Output": (("shape",), ()),
    "Affine": (("weight", "bias"), ()),
    "Linear": (("weight",), ()),
    "Scale": (("scale",), ()),
    "Conv1d": (("weight", "stride", "padding", "dilation", "groups", "bias"), ("input_shape",)),
    "Conv2d": (("weight", "stride", "padding", "dilation", "groups", "bias"), ("input_shape",)),
    "SumPool2d": (("kernel_size", "stride", "padding"), ()),
    "AvgPool2d": (("kernel_size", "stride", "padding"), ()),
    "Flatten": (("start_dim", "end_dim"), ()),
    "Delay": (("delay",), ()),
    "Threshold": (("threshold",), ()),
    "I": (("r",), ()),
    "IF": (("r", "v_threshold"), ("v_reset",)),
    "LI": (("tau", "r", "v_leak"), ()),
    "LIF": (("tau", "r", "v_leak", "v_threshold"), ("v_reset",)),
    "CubaLI": (("tau_syn", "tau_mem", "r", "v_leak"), ("w_in",)),
    "CubaLIF": (("tau_syn", "tau_mem", "r", "v_leak", "v_threshold"), ("v_reset", "w_in")),
}
"""Required and optional fields by node type; files older than NIR 1.0.5 have no ``v_reset``."""

IGNORED: Final = frozenset({"type", "metadata", "input_type", "output_type"})
"""Members of a node that are not read as fields."""
NEURONS: Final = frozenset({"I", "IF", "LI", "LIF", "CubaLI", "CubaLIF"})
"""Types with a membrane potential; a cycle through one of them is well defined."""
ELEMENTWISE: Final = NEURONS | {"Threshold", "Scale", "Delay"}
"""Types whose fields contain one value per neuron, or a single value for all."""
FIRING: Final = frozenset({"IF", "LIF", "CubaLIF"})
"""Types that fire and are then reset."""
POSITIVE: Final = frozenset({"tau", "tau_syn", "tau_mem"})
"""Fields that must be above 0, because they are divisors."""
INTEGERS: Final = frozenset({"shape", "input_shape", "stride", "dilation", "groups", "kernel_size", "start_dim", "end_dim", "padding"})


@dataclass(frozen=True, eq=False)
class NirNode:
    """A node as stored in the file."""

    path: str  # names from the outermost graph inwards, for messages
    type: str  # one of :data:`TYPES`
    fields: Mapping[str, Array] = field(default_factory=dict)  # arrays by field name
    words: Mapping[str, str] = field(default_factory=dict)  # texts by field name (a convolution's padding ``"same"`` or ``"valid"``)


@dataclass(frozen=True, eq=False)
class NirGraph:
    """A graph as stored in the file: nodes and nested graphs by name, edges, and the numbers in its metadata.

    `notes` is the text of snnc's description, if snnc wrote the file (:mod:`snnc.frontends.common.notes`).
    """

    path: str
    nodes: Mapping[str, NirNode | NirGraph]
    edges: tuple[tuple[str, str], ...]
    metadata: Mapping[str, float] = field(default_factory=dict)
    notes: str | None = None
