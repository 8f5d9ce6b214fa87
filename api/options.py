"""The options of a compilation: read from text, saved with the project."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, get_args

from snnc.compiler.graph_data import surrogate_from_data, surrogate_to_data
from snnc.compiler.losses import Loss, parse_loss
from snnc.compiler.optimizers import SGD, Adam, Optimizer
from snnc.compiler.plan import Mode, Overlap, Precision, Recompute, Streaming
from snnc.compiler.surrogate import Surrogate
from snnc.compiler.surrogates import parse_surrogate
from snnc.errors import OptionValueError, UnknownOptimizerError

OVERLAP = ("auto", "on", "off")
"""Whether the host's streams run beside computing."""
STREAMING = ("auto", "off", "inputs", "boundaries", "history")
"""What a sequence in segments may keep outside the tiles."""
REFERENCE = "reference"
"""The target that needs no machine: the NumPy backend."""
CPU = "cpu"
"""The target that is the processor at hand: an emitted C++ program."""
CUDA = "cuda"
"""The target that is a GPU: an emitted CUDA program."""
POPTORCH = "poptorch"
"""The target that is a package for PopTorch; ``poptorch:MACHINE`` names the machine that it is placed on."""
OPTIONS_FILE = "model/options.json"
"""Where a project keeps the options that it was compiled with."""
PRECISIONS = get_args(Precision)
UNPLACED = (REFERENCE, CPU, CUDA)
"""Targets without tiles: there is no plan."""


def for_poptorch(target: str) -> bool:
    """Tell whether a target is a package for PopTorch.

    Examples
    --------
    >>> for_poptorch("poptorch"), for_poptorch("poptorch:bow"), for_poptorch("bow")
    (True, True, False)
    """
    return target.partition(":")[0] == POPTORCH


def machine_of(target: str) -> str:
    """Return the name, or the file, of the machine that a target is placed on.

    Examples
    --------
    >>> machine_of("poptorch"), machine_of("poptorch:bow"), machine_of("pod4")
    ('gc200', 'bow', 'pod4')
    """
    return (target.partition(":")[2] or "gc200") if for_poptorch(target) else target


@dataclass(frozen=True)
class Options:
    """What :func:`snnc.compile` was asked for; None leaves a choice to the model or to snnc."""

    target: str = REFERENCE
    steps: int | None = None
    batch: int | None = None
    loss: Loss | None = None
    optimizer: Optimizer | None = None
    surrogate: Surrogate | None = None
    seed: int = 0
    capacity: int | None = None
    mode: Mode = "exact"
    gradient_window: tuple[float, float] | None = None
    recompute: Recompute = "auto"
    parts: int | None = None
    streaming: Streaming = "auto"
    overlap_host_io: Overlap = "auto"
    num_io_tiles: int | None = None
    """Tiles of each chip that are set aside for that; None: as many as are predicted to be best."""
    memory: int | None = None
    """Bytes that a training step on the processor may take; None: all that it needs without checkpoints."""
    precision: Precision = "float32"
    """Of backward products' factors and deltas; float16: of forward products and the kept past too. Sums and states are float32."""
    threads: int | None = None
    """Threads of a program on the processor; None: ``SNNC_THREADS``, ``OMP_NUM_THREADS`` or all."""
    truncate: int | None = None
    """Steps after which the gradient is cut; None: it flows through all steps."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "capacity", "parts", "num_io_tiles", "memory", "threads", "truncate"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value != int(value) or value < 1):
                raise OptionValueError(f"{name} is {value}; it has to be 1 or more.")
        if self.seed < 0:
            raise OptionValueError(f"seed is {self.seed}; it has to be 0 or more.")
        if self.mode not in ("exact", "drop"):
            raise OptionValueError(f"mode is {self.mode!r}; it is 'exact' or 'drop'.")
        length = self.recompute if isinstance(self.recompute, int) and not isinstance(self.recompute, bool) else 0
        if self.recompute not in ("auto", "off") and length < 1:
            raise OptionValueError(f"recompute is {self.recompute!r}; it is 'auto', 'off', or the iterations of a segment, 1 or more.")
        for name, targets in (("memory", (CPU, CUDA)), ("threads", (CPU,))):
            if getattr(self, name) is not None and self.target not in targets:
                where = " and ".join(map(repr, targets))
                raise OptionValueError(f"{name} is for the target {where}; {self.target!r} has memory and threads of its own.")
        if self.truncate is not None and self.target not in (CPU, REFERENCE):
            raise OptionValueError(f"truncate is for the targets {CPU!r} and {REFERENCE!r}; {self.target!r} goes back through all steps.")
        if self.precision not in PRECISIONS:
            raise OptionValueError(f"precision is {self.precision!r}; it is one of {', '.join(PRECISIONS)}.")
        for precision, targets in (("bfloat16", (CPU, CUDA)), ("float16", (CUDA,))):
            if self.precision == precision and self.target not in targets:
                others = "float32 or bfloat16" if self.target == CPU else "float32"
                where = " and ".join(map(repr, targets))
                raise OptionValueError(f"precision {precision!r} is for the target {where}; {self.target!r} computes in {others}.")
        if self.streaming not in STREAMING:
            raise OptionValueError(f"streaming is {self.streaming!r}; it is one of {', '.join(STREAMING)}.")
        self._check_overlap()
        if (self.parts or 1) > 1 and for_poptorch(self.target):
            raise OptionValueError(f"parts is {self.parts}, and a package for PopTorch keeps populations whole; leave parts out.")

    def _check_overlap(self) -> None:
        if self.overlap_host_io not in OVERLAP:
            raise OptionValueError(f"overlap_host_io is {self.overlap_host_io!r}; it is one of {', '.join(OVERLAP)}.")
        if self.overlap_host_io == "off" and self.num_io_tiles is not None:
            raise OptionValueError(f"num_io_tiles is {self.num_io_tiles}, and overlap_host_io is 'off'; leave one of them out.")
        if self.overlap_host_io != "on" and self.num_io_tiles is None:
            return
        if for_poptorch(self.target):
            raise OptionValueError(
                "a package for PopTorch leaves its streams to PopTorch: set TensorLocations.numIOTiles and set_overlap_for_input of "
                "poptorch.Options there, and leave overlap_host_io and num_io_tiles out."
            )
        if self.target in UNPLACED:
            raise OptionValueError(f"overlap_host_io and num_io_tiles are for machines; the target {self.target!r} has no tiles.")


def options(
    target: str = REFERENCE,
    steps: int | None = None,
    batch: int | None = None,
    loss: str | Loss | None = None,
    optimizer: str | Optimizer | None = None,
    surrogate: str | Surrogate | None = None,
    seed: int = 0,
    capacity: int | None = None,
    mode: str = "exact",
    *,
    lr: float | None = None,
    gradient_window: str | float | tuple[float, float] | None = None,
    recompute: str | int = "auto",
    parts: int | None = None,
    streaming: str = "auto",
    memory: str | int | None = None,
    threads: int | None = None,
    overlap_host_io: str = "auto",
    num_io_tiles: int | None = None,
    truncate: int | None = None,
    precision: str = "float32",
) -> Options:
    """Make options from objects or from their names."""
    return Options(
        target=target,
        steps=steps,
        batch=batch,
        loss=parse_loss(loss) if isinstance(loss, str) else loss,
        optimizer=parse_optimizer(optimizer, lr) if isinstance(optimizer, str) else _with_lr(optimizer, lr, loss is not None),
        surrogate=parse_surrogate(surrogate) if isinstance(surrogate, str) else surrogate,
        seed=seed,
        capacity=capacity,
        mode=mode,  # type: ignore[arg-type]  # checked by Options
        gradient_window=parse_window(gradient_window),
        recompute=int(recompute) if isinstance(recompute, str) and recompute.isdecimal() else recompute,  # type: ignore[arg-type]  # as mode
        streaming=streaming,  # type: ignore[arg-type]  # as mode
        parts=parts,
        overlap_host_io=overlap_host_io,  # type: ignore[arg-type]  # as mode
        num_io_tiles=num_io_tiles,
        memory=parse_memory(memory),
        threads=threads,
        truncate=truncate,
        precision=precision,  # type: ignore[arg-type]  # as mode
    )


def parse_memory(memory: str | int | None) -> int | None:
    """Read a number of bytes: ``"500M"``, ``"2G"``, ``"64k"`` (powers of 1024), or a plain number.

    Raises
    ------
    OptionValueError
        It cannot be read.

    Examples
    --------
    >>> parse_memory("500M")
    524288000
    """
    if not isinstance(memory, str):
        return memory
    text = memory.strip().upper().removesuffix("B").removesuffix("I")
    power = "KMGT".find(text[-1:]) + 1 if text else 0
    try:
        number = float(text[:-1] if power else text) * 1024**power
    except ValueError:
        number = math.nan
    if not 1 <= number < 2**63:
        raise OptionValueError(f"the memory {memory!r} cannot be read; give bytes, or a number with K, M or G, as in 500M.")
    return int(number)


def parse_window(window: str | float | tuple[float, float] | None) -> tuple[float, float] | None:
    """Read a gradient window: its lower end, or both ends; as text ``"-0.1"`` or ``"-0.1,0.5"``.

    Raises
    ------
    OptionValueError
        It cannot be read, or is empty.

    Examples
    --------
    >>> parse_window("-0.1")
    (-0.1, inf)
    """
    if window is None:
        return None
    try:
        ends = tuple(map(float, window.split(","))) if isinstance(window, str) else (window,) if isinstance(window, int | float) else window
    except ValueError:
        ends = ()
    if len(ends) == 1:
        ends = (ends[0], math.inf)
    if len(ends) != 2 or not (math.isfinite(ends[0]) and ends[0] < ends[1]):
        raise OptionValueError(
            f"the gradient window is {window!r}; give its lower end, or low,high with low < high, as in -0.1 or -0.1,0.5."
        )
    return float(ends[0]), float(ends[1])


def parse_optimizer(text: str, lr: float | None = None) -> Optimizer:
    """Make an optimiser from its name and numbers: ``"adam"``, ``"adam:0.002"``, ``"sgd:0.01,0.9"`` (learning rate, momentum).

    Raises
    ------
    UnknownOptimizerError
        The name or its numbers are not those of an optimiser.
    OptionValueError
        A number is out of range.

    Examples
    --------
    >>> parse_optimizer("sgd:0.01,0.9")
    SGD(lr=0.01, momentum=0.9, name='sgd')
    """
    name, _, numbers = text.strip().lower().partition(":")
    kinds: dict[str, tuple[Callable[..., Optimizer], tuple[str, ...]]] = {
        "sgd": (SGD, ("lr", "momentum")),
        "adam": (Adam, ("lr", "beta1", "beta2", "epsilon")),
    }
    if name not in kinds:
        raise UnknownOptimizerError(f"the optimizer {text!r} is not known; snnc knows sgd and adam, with numbers as in 'adam:0.001'.")
    kind, names = kinds[name]
    parts = [p for p in numbers.split(",") if p.strip()]
    try:
        values = dict(zip(names, map(float, parts), strict=False))
    except ValueError:
        parts = [*names, ""]
    if len(parts) > len(names):
        raise UnknownOptimizerError(f"the optimizer {text!r} has numbers that cannot be read; {name} takes {', '.join(names)}.")
    if lr is not None:
        values["lr"] = lr
    return _checked(kind(**values))


def to_data(chosen: Options) -> dict[str, Any]:
    """Return options as JSON's types."""
    return {
        "target": chosen.target,
        "steps": chosen.steps,
        "batch": chosen.batch,
        "loss": None if chosen.loss is None else _loss_text(chosen.loss),
        "optimizer": None if chosen.optimizer is None else asdict(chosen.optimizer),
        "surrogate": None if chosen.surrogate is None else surrogate_to_data(chosen.surrogate),
        "seed": chosen.seed,
        "capacity": chosen.capacity,
        "mode": chosen.mode,
        "gradient_window": None if chosen.gradient_window is None else [x if math.isfinite(x) else None for x in chosen.gradient_window],
        "recompute": chosen.recompute,
        "streaming": chosen.streaming,
        "parts": chosen.parts,
        "overlap_host_io": chosen.overlap_host_io,
        "num_io_tiles": chosen.num_io_tiles,
        "memory": chosen.memory,
        "threads": chosen.threads,
        "truncate": chosen.truncate,
        "precision": chosen.precision,
    }


def from_data(data: Mapping[str, Any]) -> Options:
    """Undo :func:`to_data`."""
    kinds = {"sgd": SGD, "adam": Adam}
    optimizer = data["optimizer"]
    return Options(
        target=data["target"],
        steps=data["steps"],
        batch=data["batch"],
        loss=None if data["loss"] is None else parse_loss(data["loss"]),
        optimizer=None if optimizer is None else kinds[optimizer["name"]](**optimizer),
        surrogate=None if data["surrogate"] is None else surrogate_from_data(data["surrogate"]),
        seed=data["seed"],
        capacity=data["capacity"],
        mode=data["mode"],
        gradient_window=_window(data.get("gradient_window")),
        recompute=data.get("recompute", "auto"),
        streaming=data.get("streaming", "auto"),
        parts=data.get("parts"),
        overlap_host_io=data.get("overlap_host_io", "auto"),
        num_io_tiles=data.get("num_io_tiles"),
        memory=data.get("memory"),
        threads=data.get("threads"),
        truncate=data.get("truncate"),
        precision=data.get("precision", "float32"),
    )


def _window(ends: list[float | None] | None) -> tuple[float, float] | None:
    """Undo what JSON cannot hold: an open end is null."""
    if ends is None:
        return None
    low, high = ends
    return parse_window((math.nan if low is None else low, math.inf if high is None else high))


def _loss_text(loss: Loss) -> str:
    numbers: list[str] = [str(getattr(loss, f.name)) for f in fields(loss)] if is_dataclass(loss) else []
    return f"{loss.name}:{','.join(numbers)}" if numbers else loss.name


def _with_lr(optimizer: Optimizer | None, lr: float | None, training: bool) -> Optimizer | None:
    if optimizer is None:
        return parse_optimizer("adam", lr) if training else None
    return _checked(optimizer)


def _checked(optimizer: Optimizer) -> Optimizer:
    if not 0 < optimizer.lr < float("inf"):
        raise OptionValueError(f"the learning rate is {optimizer.lr}; it has to be a number above 0.")
    return optimizer
