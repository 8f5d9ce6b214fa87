"""Conventions of the frameworks that write NIR files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from snnc.frontends.nir.errors import NirDialectError

DEFAULT_DT: Final = 1e-4
"""Seconds per step if neither the caller nor the file defines it, as snnTorch and SpikingJelly assume."""


@dataclass(frozen=True)
class Dialect:
    """NIR conventions of one framework."""

    name: str  # name for ``--dialect``
    dt: float  # seconds per step if neither the caller nor the file defines it
    reset: Literal["value", "subtract"] = "value"
    """Effect of a spike on the membrane potential: set to v_reset in the same step, or lowered by the threshold in the next step."""
    strict: bool = True  # whether neurons fire only above the threshold, and not at it
    unit_gain: bool = False  # whether currents enter membranes and synapses unscaled, regardless of dt, r and w_in
    plain_if: bool = False  # whether IF and I add ``r*i`` per step, regardless of dt
    plain_synapse: bool = False  # whether a synaptic current jumps by ``w_in*i``, regardless of dt
    late_output: bool = False  # whether spikes leave a neuron one step after they occur
    start: Literal["zero", "leak", "reset"] = "zero"  # initial membrane potential: 0, v_leak (v_reset if there is no leak), or v_reset
    recurrent_bypass: bool = False  # whether the input of a nested recurrent graph bypasses its recurrent weights
    note: str = ""  # tells the user how a file was read


_ALL: Final = (
    Dialect("nir", DEFAULT_DT, note="Neurons fire above their threshold and are immediately reset to v_reset, as NIR defines."),
    Dialect(
        "snntorch",
        DEFAULT_DT,
        reset="subtract",
        note="Read with snnTorch's default conventions: the threshold is subtracted in the step after a spike; the file's v_reset is "
        'ignored. For a model with reset_mechanism="zero" and reset_delay=False, use the dialect nir.',
    ),
    Dialect(
        "norse",
        1e-6,
        plain_if=True,
        plain_synapse=True,
        start="leak",
        note="Read with Norse's conventions: time constants in its files are dt times the true ones, so a step of 1 ms is 1e-6 s; "
        "IF neurons add r*i and synaptic currents add w_in*i per step, regardless of dt; membrane potentials start at v_leak.",
    ),
    Dialect(
        "spikingjelly",
        DEFAULT_DT,
        strict=False,
        start="reset",
        note="Read with SpikingJelly's conventions: neurons fire at or above their threshold; they start at v_reset and are immediately "
        "reset to it.",
    ),
    Dialect(
        "spyx",
        1.0,
        reset="subtract",
        unit_gain=True,
        late_output=True,
        recurrent_bypass=True,
        note="Read with Spyx's conventions: currents enter with gain 1, regardless of r; spikes leave one step after the membrane "
        "potential exceeds its threshold, and the threshold is subtracted in that step; the input of recurrent layers bypasses the "
        "recurrent weights.",
    ),
)
DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}


def find_dialect(name: str) -> Dialect:
    """Return the dialect with this name; an unknown name raises a NirDialectError."""
    if name not in DIALECTS:
        raise NirDialectError(f"the dialect {name[:60]!r} is unknown; choose one of {', '.join(DIALECTS)}.")
    return DIALECTS[name]
