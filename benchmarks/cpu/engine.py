"""The compared engines (frameworks, and snnc in several modes), and the interface that each implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from snnc.benchmarks.cpu.equality import TOLERANCE
from snnc.benchmarks.cpu.problem import TrainingStepProblem
from snnc.compiler.ir.graph import Array
from snnc.errors import BenchError

GRAPHED: Final = "graphed"
"""Variant of PyTorch engines in which a training step is one CUDA graph."""
TF32: Final = "tf32"
"""Mode in which the factors of products are rounded to 11 significant bits."""
SHORT: Final = ("bfloat16", "float16")
"""Modes in which factors and results of products have 16 bits, by the names that frameworks use. Products are summed in float32; states of
neurons, parameters and moments are float32."""
LOSS_SCALE: Final = {"float16": 1024.0}
"""Constant factor of the loss before the backward pass, because deltas underflow in float16; gradients are divided by it."""


class BenchmarkEngine(Protocol):
    """A framework's training step: a model, its optimiser and one batch, on `device` (``"cpu"`` or ``"cuda"``)."""

    def __init__(self, problem: TrainingStepProblem, mode: str, variant: str, device: str = "cpu") -> None: ...

    def step(self) -> float:
        """Run one training step and return the loss before it; all work has finished when the method returns."""
        ...

    def gradients(self) -> dict[str, Array]:
        """Return the gradients of the last step, by the names of the problem's weights."""
        ...

    def weights(self) -> dict[str, Array]:
        """Return the current weights."""
        ...

    def reset(self) -> None:
        """Reset the weights to those of the problem; the optimiser may keep its moments."""
        ...


@dataclass(frozen=True)
class Entry:
    """One line of the comparison: an engine in one mode."""

    engine: str
    mode: str
    """A kind of gradient, a precision, or another setting; see :data:`MODES` and :data:`EAGER`. It is not the option ``--mode`` of tile
    machines, although ``exact`` is a value of both."""
    module: str
    """The module that defines the class ``ENGINE``."""
    variants: tuple[str, ...]
    """Variants of the training step; the fastest one on a workload is compared."""
    note: str = ""
    """Differences from the usual use of the framework, for the table."""
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Environment variables of a variant's process, by variant."""
    tolerance: float = TOLERANCE
    """Maximum accepted relative error; see :func:`~snnc.benchmarks.cpu.equality.difference`."""
    compiled: tuple[str, ...] = ()
    """Variants whose compilation is slow and is cached on disk; they run once before anything is timed."""
    precision: str = "float32"
    """Format of the factors of products; only rows of the same precision are compared."""
    alone: bool = False
    """Whether the framework's compiler times kernels on the device, so that the first step must run alone there."""

    @property
    def exact(self) -> bool:
        """Whether its gradient is exact rather than windowed."""
        return self.mode != "window"


_TORCH: Final = ("eager", "one thread", "compiled")
"""Variants of the engines on PyTorch."""
_HOME: Final = "snnc.benchmarks.cpu.engines"
MODES: Final = ("exact", "events", "window", "checkpoint")
"""Modes of snnc: exact gradients; the same with inputs as events; windowed gradients; exact gradients in little memory."""
EAGER: Final = "eager"
"""Mode of an additional row for snnTorch: without ``torch.compile``, as most programs run it."""
ROUNDED: Final = 5e-2
"""Maximum accepted relative error of bfloat16 and float16."""
ENTRIES: Final = (
    *(Entry("snnc", mode, f"{_HOME}.with_snnc", ("cpu",)) for mode in MODES),
    Entry(
        "snnc",
        "bfloat16",
        f"{_HOME}.with_snnc",
        ("cpu",),
        "bfloat16: histories, dense weights and factors of backward products are rounded; its numbers may differ from the reference by "
        f"{ROUNDED:g}",
        tolerance=ROUNDED,
    ),
    Entry("snntorch", "exact", f"{_HOME}.with_snntorch", _TORCH),
    Entry("snntorch", EAGER, f"{_HOME}.with_snntorch", ("eager",)),
    Entry(
        "norse",
        "exact",
        f"{_HOME}.with_norse",
        _TORCH,
        "its SuperSpike has slope 1: membrane potentials are scaled by 25, and the gradient of the spikes by 1/25",
    ),
    Entry(
        "spikingjelly",
        "exact",
        f"{_HOME}.with_spikingjelly",
        _TORCH,
        "its SuperSpike has slope 1: membrane potentials are scaled by 25; it spikes at v >= 1",
    ),
    Entry("torch", "exact", f"{_HOME}.with_torch", _TORCH),
    Entry("jax", "exact", f"{_HOME}.with_jax", ("scan", "unrolled")),
)


def entries(requested: Sequence[str] = (), among: Sequence[Entry] = ENTRIES, suite: str = "cpu") -> tuple[Entry, ...]:
    """Return the entries of the requested engines, or of all: ``snnc`` means all its modes, ``snnc:exact`` one of them.

    Raise BenchError if the engine or the mode does not exist.
    """
    names = list(dict.fromkeys(entry.engine for entry in among))
    for name in requested:
        modes = [entry.mode for entry in among if entry.engine == name.partition(":")[0]]
        if not modes:
            raise BenchError(f"there is no engine {name!r} in the suite {suite}; there are {', '.join(names)}.")
        if ":" in name and name.partition(":")[2] not in modes:
            raise BenchError(f"{name!r} is not a mode of the suite {suite}; there are {', '.join(modes)}.")
    return tuple(entry for entry in among if not requested or entry.engine in requested or f"{entry.engine}:{entry.mode}" in requested)
