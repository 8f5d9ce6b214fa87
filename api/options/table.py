"""The options that each target takes; the source of checks, help texts and docs/reference/options.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from snnc.errors import OptionNeedsLossError, OptionTargetError
from snnc.options.targets import CPU, CUDA, KINDS, MACHINE, POPTORCH, REFERENCE, Kind, kind_of

PLACED: Final[tuple[Kind, ...]] = (POPTORCH, MACHINE)
WORDS: Final[Mapping[Kind, str]] = {
    REFERENCE: "reference",
    CPU: "cpu",
    CUDA: "cuda",
    POPTORCH: "poptorch",
    MACHINE: "machines (gc200, pod4, …)",
}
"""Kinds of targets as messages and headings name them."""


@dataclass(frozen=True)
class Rule:
    """What an option does, and where.

    Attributes
    ----------
    does
        What it changes, in a few words.
    targets
        Kinds of targets that take it.
    training
        Of these, the ones on which it changes training alone, so that it needs a loss.
    idle
        Values beside the default with which every target does what was asked for anyway.
    values
        Rules of single values, where they differ.
    instead
        What to do on a target that does not take it.
    flag
        Its name on the command line, where that is another one.
    """

    does: str
    targets: tuple[Kind, ...] = KINDS
    training: tuple[Kind, ...] = ()
    idle: tuple[str | int, ...] = ()
    values: Mapping[str, Rule] = field(default_factory=dict)
    instead: str = ""
    flag: str = ""

    def of(self, value: Any) -> Rule:
        """Return the rule of one value."""
        return self.values.get(value, self) if isinstance(value, str) else self


_TILES: Final = "only machines move spikes in windows; this target sends all spikes"
_WHOLE: Final = "only machines divide a network over tiles"
_SEGMENTS: Final = "cpu and cuda keep less with memory=, the reference keeps all states"
RULES: Final[Mapping[str, Rule]] = {
    "steps": Rule("time steps of a sequence"),
    "batch": Rule("samples of a run or an update"),
    "loss": Rule("makes the network trainable"),
    "loss_output": Rule("which output or population the loss reads", training=KINDS),
    "optimizer": Rule("how parameters change", training=KINDS),
    "lr": Rule("learning rate of the optimizer", training=KINDS),
    "learnable": Rule("neuron parameters that training changes too", training=KINDS),
    "surrogate": Rule("derivative of a spike", training=KINDS),
    "gradient_window": Rule("which neurons take gradient", training=KINDS),
    "truncate": Rule(
        "steps after which the gradient is cut",
        (REFERENCE, CPU, CUDA),
        (REFERENCE, CPU, CUDA),
        instead="the others go back through all steps",
    ),
    "seed": Rule(
        "order of samples, and what the mapping draws",
        (REFERENCE, CPU, CUDA, MACHINE),
        (REFERENCE, CPU, CUDA),
        instead="train.py of the package has a --seed of its own",
    ),
    "capacity": Rule("spikes that one window moves", PLACED, instead=_TILES),
    "mode": Rule("what happens to more spikes than a window holds", PLACED, instead=_TILES),
    "calibrate": Rule("data to measure the activity on", PLACED, instead="only mappings ask how often neurons fire", flag="data"),
    "parts": Rule("parts that populations are cut into", (MACHINE,), idle=(1,), instead=_WHOLE),
    "recompute": Rule("segments that run forward again", PLACED, PLACED, idle=("off",), instead=_SEGMENTS),
    "streaming": Rule("what may wait outside the tiles", (MACHINE,), (MACHINE,), idle=("off",), instead=_SEGMENTS),
    "overlap_host_io": Rule(
        "inputs of the next step come while one runs",
        (MACHINE,),
        idle=("off",),
        instead="it has no tiles to set aside, and PopTorch streams what its operations read (TensorLocations.numIOTiles and "
        "set_overlap_for_input of poptorch.Options)",
    ),
    "num_io_tiles": Rule(
        "tiles that are set aside for that",
        (MACHINE,),
        instead="it has no tiles to set aside, and PopTorch has TensorLocations.numIOTiles of poptorch.Options",
    ),
    "memory": Rule("bytes that a training step or a run may take", (CPU, CUDA), instead="machines have recompute= and streaming="),
    "threads": Rule("threads of the program", (CPU,), instead="it has no threads to choose"),
    "precision": Rule(
        "of products and of what is kept of the past",
        (CPU, CUDA),
        values={
            "bfloat16": Rule("", (CPU, CUDA), (CUDA,), instead="it computes in float32"),
            "float16": Rule("", (CUDA,), instead="cpu computes in float32 or bfloat16, the others in float32"),
        },
        instead="it computes in float32",
    ),
    "dt": Rule("seconds a step, of a NIR file"),
    "detach": Rule("where gradients stop inside neurons, of a model file"),
    "input_kind": Rule("what the inputs hold"),
}
"""By the name in Python. Options of the model (steps, dt, detach, input_kind) are checked against it where it is read."""


LOSS_OUTPUT: Final = "The output, the population or the population.port that the loss reads."
"""What commands say of it."""


def asks_for(name: str, value: Any, default: Any) -> bool:
    """Tell whether a value of an option asks for more than every target does."""
    return bool(value is not None and value != default and value not in RULES[name].idle)


def check_taken(target: str, training: bool, given: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect.

    Parameters
    ----------
    target
        What is compiled for.
    training
        Whether there is a loss.
    given
        Option name to value, of those options that :func:`asks_for` something.

    Raises
    ------
    OptionTargetError
        The target does not take one of them.
    OptionNeedsLossError
        One of them changes training alone, and there is no loss.
    """
    kind = kind_of(target)
    for name, value in given.items():
        rule = RULES[name].of(value)
        if kind not in rule.targets:
            takers = ", ".join(WORDS[k] for k in rule.targets)
            raise OptionTargetError(f"{_shown(name, value)} is for the targets {takers}, not for {target!r}: {rule.instead}; leave it out.")
        if kind in rule.training and not training:
            raise OptionNeedsLossError(
                f"{_shown(name, value)} changes training alone, and no loss is given, so nothing is trained; give a loss "
                "(--loss ce_count), or leave it out."
            )


def _shown(name: str, value: Any) -> str:
    """An option with its value, short, for a message."""
    flag = RULES[name].flag
    known = f"{name} (--{flag})" if flag else name
    return f"{known} = {value!r}" if isinstance(value, str | int | float | tuple) else known


def taken_by(name: str, kind: Kind, value: Any = None) -> str:
    """Return ``"yes"``, ``"with a loss"`` or ``"refused"``: whether a kind of target takes an option.

    Examples
    --------
    >>> taken_by("threads", "cpu"), taken_by("threads", "cuda"), taken_by("truncate", "cpu")
    ('yes', 'refused', 'with a loss')
    """
    rule = RULES[name].of(value)
    if kind not in rule.targets:
        return "refused"
    return "with a loss" if kind in rule.training else "yes"


def help_of(name: str, text: str) -> str:
    """Return the help of a command's option, with what its rule says in front.

    Examples
    --------
    >>> help_of("truncate", "cut the gradient every K steps.")
    'Targets reference, cpu, with --loss: cut the gradient every K steps.'
    """
    rule = RULES[name]
    where = f"targets {', '.join(WORDS[k].partition(' ')[0] for k in rule.targets)}" if rule.targets != KINDS else ""
    head = ", ".join(filter(None, (where, "with --loss" if rule.targets == rule.training else "")))
    return f"{head[:1].upper()}{head[1:]}: {text}" if head else text
