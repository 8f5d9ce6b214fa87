"""The conventions of each framework for its NIR files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from snnc.frontends.nir.errors import NirDialectError

DEFAULT_DT: Final = 1e-4
"""Seconds per step if neither the caller nor the file gives it: the assumption of snnTorch and SpikingJelly."""


@dataclass(frozen=True)
class Dialect:
    """The NIR conventions of one framework.

    Parameters
    ----------
    name
        Its name for ``--dialect``.
    dt
        Seconds per step if neither the caller nor the file gives it.
    reset
        "value": to v_reset, at once; "subtract": by the threshold, in the next step.
    strict
        Neurons fire above the threshold, else at or above it.
    unit_gain
        A current enters a membrane (and a synapse) unscaled, whatever r and w_in are.
    plain_if
        IF and I add ``r*i`` per step, whatever dt is.
    plain_synapse
        A synaptic current jumps by ``w_in*i``, whatever dt is.
    late_output
        Spikes leave a neuron one step after they were fired.
    start
        Initial value of membranes: 0, v_leak (v_reset if there is no leak), or v_reset.
    recurrent_bypass
        The input of a nested recurrent graph goes to the neurons, although its edges lead through the recurrent weights.
    note
        A note for the user.
    """

    name: str
    dt: float
    reset: Literal["value", "subtract"] = "value"
    strict: bool = True
    unit_gain: bool = False
    plain_if: bool = False
    plain_synapse: bool = False
    late_output: bool = False
    start: Literal["zero", "leak", "reset"] = "zero"
    recurrent_bypass: bool = False
    note: str = ""


_ALL: Final = (
    Dialect(
        "nir",
        DEFAULT_DT,
        note="Neurons fire above their threshold and are reset to v_reset at once, as NIR defines them.",
    ),
    Dialect(
        "snntorch",
        DEFAULT_DT,
        reset="subtract",
        note="Read with the conventions of snnTorch's defaults: the threshold is subtracted in the step after a spike; v_reset of the "
        "file is not used. "
        'For a model with reset_mechanism="zero" and reset_delay=False, use the dialect nir.',
    ),
    Dialect(
        "norse",
        1e-6,
        plain_if=True,
        plain_synapse=True,
        start="leak",
        note="Read with the conventions of Norse: time constants in its files are dt times the true ones, so a step of 1 ms is one of "
        "1e-6 s; "
        "IF neurons add r*i and synaptic currents w_in*i per step, whatever dt is; membranes start at v_leak.",
    ),
    Dialect(
        "spikingjelly",
        DEFAULT_DT,
        strict=False,
        start="reset",
        note="Read with the conventions of SpikingJelly: neurons fire at or above their threshold; they start at v_reset and are reset to "
        "it at once.",
    ),
    Dialect(
        "spyx",
        1.0,
        reset="subtract",
        unit_gain=True,
        late_output=True,
        recurrent_bypass=True,
        note="Read with the conventions of Spyx: currents enter with gain 1 whatever r is, spikes leave one step after the membrane "
        "passed its "
        "threshold and subtract the threshold in that step; the input of recurrent layers does not pass the recurrent weights.",
    ),
)
DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in _ALL}
"""Every dialect by name."""


def find_dialect(name: str) -> Dialect:
    """Return a dialect by its name.

    Raises
    ------
    NirDialectError
        No dialect has this name.
    """
    if name not in DIALECTS:
        raise NirDialectError(f"the dialect {name[:60]!r} is not known; choose one of {', '.join(DIALECTS)}.")
    return DIALECTS[name]
