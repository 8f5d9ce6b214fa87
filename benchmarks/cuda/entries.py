"""The engines of the suite cuda: those of the suite cpu with variants for a GPU, and Spyx, in float32 and in lower precisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from snnc.benchmarks.cpu.engine import ENTRIES, GRAPHED, LOSS_SCALE, MODES, ROUNDED, Entry, entries
from snnc.errors import BenchError

FLOAT32: Final = "float32"
FRAMEWORK_TOLERANCE: Final = 3e-4
"""Maximum accepted relative difference between the reference and other frameworks in float32; a GPU sums in another order."""
TOLERANCES: Final = {"tf32": 5e-3, "bfloat16": ROUNDED, "float16": ROUNDED}
"""Maximum accepted relative difference from the reference in a lower precision. Rounding changes one factor by at most 4.9e-4 of its value
in TF32 and float16, and 3.9e-3 in bfloat16. The checked problem is drawn such that rounding changes no spike."""
PRECISIONS: Final = (FLOAT32, *TOLERANCES)
_SNNC: Final = "snnc.benchmarks.cpu.engines.with_snnc"
_SNNC_NOTES: Final = {
    "tf32": "weights have 11 bits in forward products of spikes, outside recurrences",
    "bfloat16": "factors of backward products are rounded",
    "float16": "factors of dense products and stored histories are rounded",
}
_TORCH_NOTES: Final = {
    "tf32": "TF32 is on in cuBLAS and cuDNN",
    "bfloat16": "autocast; membrane potentials are float32",
    "float16": f"autocast and a loss scale of {LOSS_SCALE['float16']:g}; membrane potentials are float32",
}
_JAX_NOTES: Final = {
    "tf32": "matmul precision tensorfloat32",
    "bfloat16": "factors and results of products are bfloat16",
    "float16": f"factors and results of products are float16, with a loss scale of {LOSS_SCALE['float16']:g}",
}
"""Notes below the table, by precision."""
_MATMUL: Final = {"tf32": "tensorfloat32", "bfloat16": "default", "float16": "default"}
"""Values of JAX_DEFAULT_MATMUL_PRECISION, by precision; the default suffices for factors of 16 bits."""
_SCALED: Final = "currents are scaled after the product, so that the same weights are rounded to 16 bits as in the other frameworks"
_COMPILED: Final = "compiled"
_TORCH: Final = ("eager", _COMPILED, GRAPHED)
_TRITON: Final = "triton"
_SPYX_NOTE: Final = "its LIF resets by subtraction and a step later, so the neuron is written as one of its stateful layers"


def _entry(engine: str) -> Entry:
    """Return an engine of the suite cpu, with its variants and its tolerance on a GPU."""
    base = next(e for e in ENTRIES if e.engine == engine)
    if engine == "jax":
        return replace(base, tolerance=FRAMEWORK_TOLERANCE, alone=True)
    return replace(base, variants=_TORCH, tolerance=FRAMEWORK_TOLERANCE, compiled=(_COMPILED,))


_FRAMEWORKS: Final = (
    _entry("snntorch"),
    _entry("norse"),
    replace(_entry("spikingjelly"), variants=(*_TORCH, _TRITON), settings={_TRITON: {"SJ_LIF_CUDA_IMPLEMENTATION": "triton"}}),
    _entry("torch"),
    _entry("jax"),
    Entry("spyx", "exact", "snnc.benchmarks.cpu.engines.with_spyx", ("scan",), _SPYX_NOTE, tolerance=FRAMEWORK_TOLERANCE, alone=True),
)


def _lower(base: Entry, precision: str) -> Entry:
    """Return a framework's line in a lower precision, with that framework's own settings for it."""
    on_jax = base.engine in ("jax", "spyx")
    notes = [base.note, (_JAX_NOTES if on_jax else _TORCH_NOTES)[precision]]
    if precision != "tf32" and base.engine in ("norse", "spikingjelly"):
        notes.append(_SCALED)
    settings = {way: {"JAX_DEFAULT_MATMUL_PRECISION": _MATMUL[precision]} for way in base.variants} if on_jax else base.settings
    note = f"{precision}: " + "; ".join(note for note in notes if note)
    return replace(base, mode=precision, precision=precision, tolerance=TOLERANCES[precision], note=note, settings=settings)


def _all() -> Iterator[Entry]:
    yield from (Entry("snnc", mode, _SNNC, ("cuda",)) for mode in MODES)
    yield from _FRAMEWORKS
    for precision, tolerance in TOLERANCES.items():
        note = f"{precision}: {_SNNC_NOTES[precision]}; its numbers may differ from the reference by {tolerance:g}"
        yield Entry("snnc", precision, _SNNC, ("cuda",), note, tolerance=tolerance, precision=precision)
        yield from (_lower(base, precision) for base in _FRAMEWORKS)


CUDA_ENTRIES: Final = tuple(_all())


def precisions(text: str) -> tuple[str, ...]:
    """Return the precisions that ``--precision`` names: separated by commas, or ``all``. Raise BenchError if one does not exist."""
    named = PRECISIONS if text == "all" else tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in named:
        if name not in PRECISIONS:
            raise BenchError(f"--precision {name}: there are {', '.join(PRECISIONS)}, and all.")
    return named


def requested(engines: Sequence[str], chosen: Sequence[str], among: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the lines of `engines` (empty: all) in the `chosen` precisions.

    An engine that is named with its mode, such as ``snnc:bfloat16``, is returned even if its precision is not chosen.
    Raise BenchError if an engine or a mode does not exist, or no line remains.
    """
    candidates = entries(engines, among, "cuda")
    left = tuple(e for e in candidates if e.precision in chosen or f"{e.engine}:{e.mode}" in engines)
    if not left:
        raise BenchError(f"no requested engine runs in the precision {' or '.join(chosen) or '(none given)'}.")
    return left
