"""What each compile option does; each back end defines which options it takes. Used by checks, help and docs/reference/options.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from snnc.backends.backend import Taken
from snnc.backends.registry import BACKENDS, AnyBackend, backend_of
from snnc.errors import OptionNeedsLossError, OptionTargetError


@dataclass(frozen=True)
class Rule:
    """What an option does, and what to do on targets that do not take it.

    Attributes
    ----------
    does
        What it affects, in a few words.
    idle
        Values other than the default that every target satisfies without doing anything.
    values
        What to do instead, for values with their own rule; tables have a line for each of these values.
    instead
        What to do on a target that does not take it.
    flag
        Its name on the command line, if that differs.
    everywhere
        Whether all targets take the option, for options of the model: back ends have no field for these.
    targets
        Names of the back ends that take it, if `everywhere` holds for some alone; empty: all.
    """

    does: str
    idle: tuple[str | int, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    flag: str = ""
    everywhere: Taken | None = None
    targets: tuple[str, ...] = ()

    def remedy(self, value: Any) -> str:
        """Return what to do on a target that does not take `value`."""
        return self.values.get(value, self.instead) if isinstance(value, str) else self.instead


_TILES: Final = "this target sends all spikes"
_WHOLE: Final = "only machines divide a network over tiles"
_SEGMENTS: Final = "on cpu and cuda memory= bounds the stored states; the reference stores all of them"
RULES: Final[Mapping[str, Rule]] = {
    "steps": Rule("time steps of a sequence"),
    "batch": Rule("samples of a run or an update"),
    "loss": Rule("makes the network trainable"),
    "loss_output": Rule("which output or population the loss reads"),
    "optimizer": Rule("update rule of the parameters"),
    "lr": Rule("learning rate of the optimizer", everywhere="with a loss"),
    "loss_scale": Rule(
        "factor of the loss's gradient",
        instead="PopTorch's optimisers take no factor",
        everywhere="with a loss",
        targets=("reference", "cpu", "cuda", "machine"),
    ),
    "learnable": Rule("neuron parameters that are trained", everywhere="with a loss"),
    "surrogate": Rule("derivative of a spike"),
    "gradient_window": Rule("which neurons take gradient"),
    "truncate": Rule("steps through which gradients flow back (truncated BPTT)", instead="here gradients flow back through all steps"),
    "input_gradients": Rule(
        "the gradient of inputs too, for layers before the network", instead="snnc.torch.Module(net, input_gradients=True) returns it"
    ),
    "seed": Rule("seed of the order of samples and of the mapping", instead="use --seed of the package's train.py"),
    "capacity": Rule("spikes that one window moves", instead=_TILES),
    "mode": Rule("what happens to more spikes than a window holds", instead=_TILES),
    "drop": Rule("which spikes are kept in mode drop", instead="the lowest ids are kept"),
    "calibrate": Rule("data on which the activity is measured", instead="only the mapping onto tiles uses the activity", flag="data"),
    "parts": Rule("number of parts that populations are cut into", idle=(1,), instead=_WHOLE),
    "recompute": Rule("segments whose forward pass runs twice, to store fewer states", idle=("off",), instead=_SEGMENTS),
    "streaming": Rule("data that may be stored outside the tiles", idle=("off",), instead=_SEGMENTS),
    "memory": Rule("memory limit of a training step or a run, in bytes", instead="machines have recompute= and streaming="),
    "threads": Rule("threads of the program", instead="its number of threads cannot be chosen"),
    "half": Rule("which numbers are float16: weights, pasts, deltas", instead="precision= says there what is rounded"),
    "precision": Rule(
        "of products, of weights, of what is kept of the past",
        values={
            "bfloat16": "it computes in float32; machines keep the past as float16",
            "float16": "it computes in float32",
        },
        instead="it computes in float32",
    ),
    "dt": Rule("length of a time step in seconds, for NIR files", everywhere="yes"),
    "detach": Rule("where gradients stop inside neurons, for model files", everywhere="yes"),
    "input_kind": Rule("kind of the inputs: spikes or values", everywhere="yes"),
}
"""Rules by the option's name in Python. Options of the model (steps, dt, detach, input_kind) are checked when the model is read."""


LOSS_OUTPUT: Final = "The output, the population or the population.port that the loss reads."
"""Help text of --loss-output."""


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
                f"{_shown(name, value)} only affects training, and no loss is given; give a loss (--loss ce_count), or leave it out."
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


def help_of(name: str, text: str) -> str:
    """Return the help text of a command's option, after the names of the targets that take it.

    Examples
    --------
    >>> help_of("truncate", "cut the gradient every K steps.")
    'Targets reference, cpu, cuda, with --loss: cut the gradient every K steps.'
    """
    takers = {b: taken for b in BACKENDS if (taken := taken_by(name, b)) != "refused"}
    where = f"targets {', '.join(b.words.partition(' ')[0] for b in takers)}" if len(takers) < len(BACKENDS) else ""
    head = ", ".join(filter(None, (where, "with --loss" if set(takers.values()) == {"with a loss"} else "")))
    return f"{head[:1].upper()}{head[1:]}: {text}" if head else text
