"""Descriptions of the compile options, for checks, the help and docs/reference/options.md; backends define which options they accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from snnc.backends.backend import Support
from snnc.backends.registry import BACKENDS, AnyBackend, backend_of
from snnc.errors import OptionNeedsLossError, OptionTargetError


@dataclass(frozen=True)
class Rule:
    """An option: its effect in a few words, its form on the command line, and advice for targets that do not accept it.

    `help` is the help text of the command line, empty if the command defines it; :func:`help_of` adds the targets that accept the option.
    `metavar` is the name of its value there, and `flag` its own name, if it differs. `idle` are values, besides the default, that request
    nothing on any target. `values` is advice for particular values, each of which has its own row in tables; `instead` is the advice for
    all others. An option without a field in the options of backends has the support `everywhere` on the backends named in `targets`, or on
    all if this is empty.
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
    everywhere: Support | None = None
    targets: tuple[str, ...] = ()


_TILES: Final = "this target sends all spikes"
_WHOLE: Final = "only machines distribute a network over tiles"
_SEGMENTS: Final = "on cpu and cuda memory= limits the stored states; the reference stores all of them"
"""Advice that several rules give."""
RULES: Final[Mapping[str, Rule]] = {
    "batch": Rule("number of samples in a run or an update", "Number of samples in one run or training step (default 32).", type=int),
    "steps": Rule(
        "number of time steps of a sequence", "Number of time steps of a sequence; overrides the number fixed by the model.", type=int
    ),
    "loss": Rule("makes the network trainable", "Loss to train with: ce_count, mse_rate, ce_count:classes=10 … (how-to: losses)"),
    "loss_output": Rule(
        "output or population that the loss reads", "The output, population or population.port that the loss reads.", "NAME"
    ),
    "optimizer": Rule(
        "update rule of the parameters", "adam, adamw, sgd or rmsprop, also with settings: sgd:0.01,0.9, adamw:0.001,weight_decay=0.1."
    ),
    "lr": Rule("learning rate of the optimiser", "Learning rate.", type=float, everywhere="with a loss"),
    "loss_scale": Rule(
        "factor by which the loss's gradient is multiplied",
        "Factor by which the loss's gradient is multiplied, or dynamic; an update whose gradients overflow is skipped.",
        instead="PopTorch's optimisers have no loss scale",
        everywhere="with a loss",
        targets=("reference", "cpu", "cuda", "machine"),
    ),
    "learnable": Rule(
        "neuron parameters that are trained", "Neuron parameters to train, such as beta,threshold.", "NAMES", everywhere="with a loss"
    ),
    "surrogate": Rule("surrogate derivative of a spike", "Surrogate derivative of a spike: atan (default), fast_sigmoid:25 …"),
    "gradient_window": Rule(
        "neurons that receive a gradient", "Only neurons with LOW < membrane - threshold < HIGH receive a gradient.", "LOW[,HIGH]"
    ),
    "capacity": Rule(
        "maximum number of spikes in one window or, in mode drop, in a step",
        "Maximum number of spikes of a source in one window or, in mode drop, in a step: 64, '5 %' of its neurons, '5 %; hidden=20'.",
        metavar="SPIKES",
        instead=_TILES,
    ),
    "parts": Rule(
        "number of parts into which populations are split",
        "Split populations with sparse connections into this many parts; 1 keeps them whole.",
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
        "Spikes kept by --mode drop: those with the lowest ids, or random ones.",
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
        instead="machines have recompute= and streaming= instead",
    ),
    "threads": Rule("number of threads of the program", "Number of threads.", type=int, instead="its number of threads cannot be chosen"),
    "truncate": Rule(
        "maximum number of steps through which gradients flow back (truncated BPTT)",
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
        instead="snnc.torch.Module(net, input_gradients=True) returns them",
    ),
    "half": Rule(
        "values stored as float16: weights, history (stored past steps), deltas, states (which changes spikes)",
        "Values stored as float16: one or more of weights (weights:stochastic), history (stored past steps), deltas, states (which changes "
        "spikes); by layer: 'weights; hidden=states; readout=float32'.",
        instead="on that target precision= selects the rounded values",
    ),
    "precision": Rule(
        "precision of products, weights and stored states",
        "float32, tf32, bfloat16 or float16; the target determines which values are rounded.",
        default="float32",
        values={
            "tf32": "only programs for GPUs round the factors of products to the 11 bits of tf32",
            "bfloat16": "this target computes in float32 and stores no numbers as bfloat16",
            "float16": "this target computes in float32",
        },
        instead="this target computes in float32",
    ),
    "calibrate": Rule(
        "data on which the activity is measured",
        "An npz archive with inputs, to measure how often neurons fire; with --run, on any target.",
        instead="only the mapping onto tiles uses the activity",
        type=Path,
        flag="data",
    ),
    "seed": Rule("seed for the order of samples and for the mapping", instead="use --seed of the package's train.py"),
    "dt": Rule("length of a time step in seconds, for NIR files", everywhere="yes"),
    "detach": Rule("points at which gradients stop inside neurons, for model files", everywhere="yes"),
    "input_kind": Rule("kind of the inputs: spikes or values", everywhere="yes"),
}
"""Rules by Python option name, in the order of ``snnc compile --help``. Options of the model
(steps, dt, detach, input_kind) are checked when the model is read."""


def requests_effect(name: str, value: Any, default: Any) -> bool:
    """Return whether `value` requests an effect: it is neither the default nor a value without effect."""
    return bool(value is not None and value != default and value not in RULES[name].idle)


def check_support(target: str, training: bool, requested: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect on `target`; `requested` contains the values for which :func:`requests_effect` is true."""
    backend = backend_of(target)
    for name, value in requested.items():
        support = support_of(name, backend, value)
        if support == "refused":
            takers = ", ".join(b.shown_name for b in BACKENDS if support_of(name, b, value) != "refused")
            advice = RULES[name].values.get(str(value), RULES[name].instead)
            raise OptionTargetError(f"{_shown(name, value)} is for the targets {takers}, not for {target!r}: {advice}; leave it out.")
        if support == "with a loss" and not training:
            raise OptionNeedsLossError(
                f"{_shown(name, value)} only affects training, but no loss is given; give a loss (--loss ce_count), or leave it out."
            )


def _shown(name: str, value: Any) -> str:
    flag = RULES[name].flag
    known = f"{name} (--{flag})" if flag else name
    return f"{known} = {value!r}" if isinstance(value, str | int | float | tuple) else known


def support_of(name: str, backend: AnyBackend, value: Any = None) -> Support:
    """Return whether a backend accepts an option: ``"yes"``, ``"with a loss"`` or ``"refused"``."""
    rule = RULES[name]
    if rule.targets and backend.name not in rule.targets:
        return "refused"
    return rule.everywhere or backend.support(name, value)


def help_of(name: str) -> str:
    """Return the command-line help of an option: the targets that accept it, and its effect.

    Examples
    --------
    >>> help_of("truncate")
    'Only for reference, cpu, cuda, with --loss: Cut the gradient every K steps (truncated BPTT).'
    """
    takers = {b: support for b in BACKENDS if (support := support_of(name, b)) != "refused"}
    where = f"only for {', '.join(b.shown_name.partition(' ')[0] for b in takers)}" if len(takers) < len(BACKENDS) else ""
    head = ", ".join(filter(None, (where, "with --loss" if set(takers.values()) == {"with a loss"} else "")))
    return f"{head[:1].upper()}{head[1:]}: {RULES[name].help}" if head else RULES[name].help
