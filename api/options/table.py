"""A rule for each compile option, for the checks, the help and docs/reference/options.md; each back end defines which options it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from snnc.backends.backend import Taken
from snnc.backends.registry import BACKENDS, AnyBackend, backend_of
from snnc.errors import OptionNeedsLossError, OptionTargetError


@dataclass(frozen=True)
class Rule:
    """Describes an option, its alternative on targets that do not take it, and its form on the command line.

    Attributes
    ----------
    does
        Its effect, in a few words.
    help
        Help text of the command line, empty if the command defines it. :func:`help_of` adds the targets that take the option.
    metavar
        Name of its value in the help.
    type, default
        Type and default of its value on the command line.
    idle
        Values other than the default that every target satisfies without doing anything.
    values
        Advice for particular values; tables have a line for each of these values.
    instead
        Advice for targets that do not take it.
    flag
        Its name on the command line, if that differs.
    everywhere
        Whether all targets take the option, for options of the model: back ends have no field for these.
    targets
        Names of the back ends to which `everywhere` applies; empty: all.
    """

    does: str
    help: str = ""
    metavar: str | None = None
    type: type = str
    default: str | int | None = None
    idle: tuple[str | int, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    flag: str = ""
    everywhere: Taken | None = None
    targets: tuple[str, ...] = ()

    def remedy(self, value: Any) -> str:
        """Return the advice for a target that does not support `value`."""
        return self.values.get(value, self.instead) if isinstance(value, str) else self.instead


_TILES: Final = "this target sends all spikes"
_WHOLE: Final = "only machines divide a network over tiles"
_SEGMENTS: Final = "on cpu and cuda memory= bounds the stored states; the reference stores all of them"
RULES: Final[Mapping[str, Rule]] = {
    "batch": Rule("samples of a run or an update", "Samples of one run or training step (default 32).", type=int),
    "steps": Rule("time steps of a sequence", "Time steps of a sequence; overrides the number that the model fixes.", type=int),
    "loss": Rule("makes the network trainable", "Loss to train with: ce_count, mse_rate, ce_count:classes=10 … (how-to: losses)"),
    "loss_output": Rule(
        "output or population that the loss reads",
        "The output, the population or the population.port that the loss reads.",
        "NAME",
    ),
    "optimizer": Rule(
        "update rule of the parameters",
        "adam, adamw, sgd, rmsprop, or with numbers: sgd:0.01,0.9, adamw:0.001,weight_decay=0.1.",
    ),
    "lr": Rule("learning rate of the optimizer", "Learning rate.", type=float, everywhere="with a loss"),
    "loss_scale": Rule(
        "factor of the loss's gradient",
        "Factor of the loss's gradient, or dynamic; an overflow skips the update.",
        instead="PopTorch's optimisers take no factor",
        everywhere="with a loss",
        targets=("reference", "cpu", "cuda", "machine"),
    ),
    "learnable": Rule(
        "neuron parameters that are trained", "Neuron parameters to train: beta,threshold.", "NAMES", everywhere="with a loss"
    ),
    "surrogate": Rule("derivative of a spike", "Derivative of a spike: atan (default), fast_sigmoid:25 …"),
    "gradient_window": Rule(
        "neurons that receive gradient", "Only neurons with LOW < membrane - threshold < HIGH receive gradient.", "LOW[,HIGH]"
    ),
    "capacity": Rule(
        "spikes that one window moves",
        "Spikes of a source that one window, or step, moves: 64, '5 %' of its neurons, '5 %; hidden=20'.",
        metavar="SPIKES",
        instead=_TILES,
    ),
    "parts": Rule(
        "number of parts that populations are cut into",
        "Cut populations with sparse connections into this many parts; 1 leaves them whole.",
        type=int,
        idle=(1,),
        instead=_WHOLE,
    ),
    "mode": Rule(
        "treatment of spikes beyond a window's capacity",
        "Treatment of spikes beyond the capacity: exact (further windows) or drop.",
        default="exact",
        instead=_TILES,
    ),
    "drop": Rule(
        "choice of spikes kept in mode drop",
        "Spikes that --mode drop keeps: those of the lowest ids, or random ones.",
        default="lowest",
        instead="the lowest ids are kept",
    ),
    "recompute": Rule(
        "segments whose forward pass runs twice, so that fewer states are stored",
        "Run segments (of N iterations) forward twice, so that fewer states are stored: auto (default), off or N.",
        "auto|off|N",
        default="auto",
        idle=("off",),
        instead=_SEGMENTS,
    ),
    "streaming": Rule(
        "data that may be stored outside the tiles",
        "Data that may be stored outside the tiles if they are too small: auto (default), off, inputs, boundaries (first states of "
        "segments), history (all their states).",
        "auto|off|inputs|boundaries|history",
        default="auto",
        idle=("off",),
        instead=_SEGMENTS,
    ),
    "memory": Rule(
        "memory limit of a training step or a run, in bytes",
        "Memory limit of a training step, such as 500M.",
        "BYTES",
        instead="machines have recompute= and streaming=",
    ),
    "threads": Rule("threads of the program", "Number of threads.", type=int, instead="its number of threads cannot be chosen"),
    "truncate": Rule(
        "steps through which gradients flow back (truncated BPTT)",
        "Cut the gradient every K steps (truncated BPTT).",
        "K",
        int,
        instead="on this target gradients flow back through all steps",
    ),
    "input_gradients": Rule(
        "whether inputs have gradients, for layers before the network",
        "Return gradients of the inputs, for layers before the network.",
        type=bool,
        default=False,
        instead="snnc.torch.Module(net, input_gradients=True) returns it",
    ),
    "half": Rule(
        "numbers stored as float16: weights, pasts, deltas",
        "Numbers stored as float16: one or more of weights (weights:stochastic), pasts, deltas.",
        instead="on that target precision= selects the rounded numbers",
    ),
    "precision": Rule(
        "precision of products, weights and stored states",
        "float32, bfloat16 or float16; the target determines which numbers are rounded.",
        default="float32",
        values={
            "bfloat16": "it computes in float32; machines store states as float16",
            "float16": "it computes in float32",
        },
        instead="it computes in float32",
    ),
    "calibrate": Rule(
        "data on which the activity is measured",
        "An npz archive with inputs, to measure how often neurons fire; with --run, on any target.",
        instead="only the mapping onto tiles uses the activity",
        type=Path,
        flag="data",
    ),
    "seed": Rule("seed of the order of samples and of the mapping", instead="use --seed of the package's train.py"),
    "dt": Rule("length of a time step in seconds, for NIR files", everywhere="yes"),
    "detach": Rule("points at which gradients stop inside neurons, for model files", everywhere="yes"),
    "input_kind": Rule("kind of the inputs: spikes or values", everywhere="yes"),
}
"""Rules by the option's name in Python, in the order of ``snnc compile --help``. Options of the model
(steps, dt, detach, input_kind) are checked when the model is read."""


def requests_effect(name: str, value: Any, default: Any) -> bool:
    """Return whether `value` requests an effect, that is, whether it is neither the default nor a value that changes nothing."""
    return bool(value is not None and value != default and value not in RULES[name].idle)


def check_taken(target: str, training: bool, given: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect.

    Parameters
    ----------
    target
        The target of the compilation.
    training
        Whether there is a loss.
    given
        Option name to value, for the options for which :func:`requests_effect` is true.

    Raises
    ------
    OptionTargetError
        The target does not take one of them.
    OptionNeedsLossError
        One of them only affects training, and there is no loss.
    """
    backend = backend_of(target)
    for name, value in given.items():
        taken = taken_by(name, backend, value)
        if taken == "refused":
            takers = ", ".join(b.words for b in BACKENDS if taken_by(name, b, value) != "refused")
            raise OptionTargetError(
                f"{_shown(name, value)} is for the targets {takers}, not for {target!r}: {RULES[name].remedy(value)}; leave it out."
            )
        if taken == "with a loss" and not training:
            raise OptionNeedsLossError(
                f"{_shown(name, value)} only affects training, but no loss is given; give a loss (--loss ce_count), or leave it out."
            )


def _shown(name: str, value: Any) -> str:
    """An option with its value, for a message."""
    flag = RULES[name].flag
    known = f"{name} (--{flag})" if flag else name
    return f"{known} = {value!r}" if isinstance(value, str | int | float | tuple) else known


def taken_by(name: str, backend: AnyBackend, value: Any = None) -> Taken:
    """Return ``"yes"``, ``"with a loss"`` or ``"refused"``: whether a back end takes an option.

    Examples
    --------
    >>> taken_by("threads", backend_of("cpu")), taken_by("threads", backend_of("cuda")), taken_by("truncate", backend_of("cpu"))
    ('yes', 'refused', 'with a loss')
    """
    rule = RULES[name]
    if rule.targets and backend.name not in rule.targets:
        return "refused"
    return rule.everywhere or backend.taken(name, value)


def help_of(name: str) -> str:
    """Return the help text of an option on the command line: the targets that take it, and what it does.

    Examples
    --------
    >>> help_of("truncate")
    'Targets reference, cpu, cuda, with --loss: Cut the gradient every K steps (truncated BPTT).'
    """
    takers = {b: taken for b in BACKENDS if (taken := taken_by(name, b)) != "refused"}
    where = f"targets {', '.join(b.words.partition(' ')[0] for b in takers)}" if len(takers) < len(BACKENDS) else ""
    head = ", ".join(filter(None, (where, "with --loss" if set(takers.values()) == {"with a loss"} else "")))
    return f"{head[:1].upper()}{head[1:]}: {RULES[name].help}" if head else RULES[name].help
