"""The engines of the suite cuda: those of the suite cpu, in variants for a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from snnc.benchmarks.cpu.engine import ENTRIES, MODES, ROUNDED, Entry
from snnc.benchmarks.cpu.engines import torch_variants

_SNNC: Final = "snnc.benchmarks.cpu.engines.with_snnc"
_ROUNDED: Final = {
    "bfloat16": f"bfloat16: factors of backward products are rounded; its numbers are compared to {ROUNDED:g}",
    "float16": f"float16: factors of dense products and stored histories are rounded; its numbers are compared to {ROUNDED:g}",
}
_COMPILED: Final = "compiled"
_TORCH: Final = ("eager", _COMPILED, torch_variants.GRAPHED)
_TRITON: Final = "triton"
PEERS: Final = 3e-4
"""Largest accepted difference of other frameworks from the exact numbers; a device sums in a different order."""
_SPYX_NOTE: Final = "its LIF resets by subtraction and a step later, so the neuron is written as one of its stateful layers"


def _entry(engine: str) -> Entry:
    base = next(e for e in ENTRIES if e.engine == engine)
    if engine == "jax":
        return replace(base, tolerance=PEERS, alone=True)
    return replace(base, variants=_TORCH, tolerance=PEERS, compiled=(_COMPILED,))


CUDA_ENTRIES: Final = (
    *(Entry("snnc", mode, _SNNC, ("cuda",)) for mode in MODES),
    *(Entry("snnc", mode, _SNNC, ("cuda",), note, tolerance=ROUNDED) for mode, note in _ROUNDED.items()),
    _entry("snntorch"),
    _entry("norse"),
    replace(_entry("spikingjelly"), variants=(*_TORCH, _TRITON), settings={_TRITON: {"SJ_LIF_CUDA_IMPLEMENTATION": "triton"}}),
    _entry("torch"),
    _entry("jax"),
    Entry("spyx", "exact", "snnc.benchmarks.cpu.engines.with_spyx", ("scan",), _SPYX_NOTE, tolerance=PEERS, alone=True),
)
