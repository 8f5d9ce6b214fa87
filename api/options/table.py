"""What each option of a compilation does; the back ends say which of them they take. Used by checks, help and docs/reference/options.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from snnc.backends.backend import Taken
from snnc.backends.registry import BACKENDS, AnyBackend, backend_of
from snnc.errors import OptionNeedsLossError, OptionTargetError


@dataclass(frozen=True)
class Rule:
    """What an option does, and what to do where it is not taken.

    Attributes
    ----------
    does
        What it changes, in a few words.
    idle
        Values other than the default that every target satisfies without doing anything.
    values
        What to do instead of single values, where they differ: those a table shows in lines of their own.
    instead
        What to do on a target that does not take it.
    flag
        Its name on the command line, where that is another one.
    everywhere
        How every target takes an option of the model; back ends have no field for it.
    targets
        Names of the back ends that take it, where `everywhere` is for some alone; empty: all.
    """

    does: str
    idle: tuple[str | int, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    instead: str = ""
    flag: str = ""
    everywhere: Taken | None = None
    targets: tuple[str, ...] = ()

    def remedy(self, value: Any) -> str:
        """Return what to do where a value is not taken."""
        return self.values.get(value, self.instead) if isinstance(value, str) else self.instead


_TILES: Final = "this target sends all spikes"
_WHOLE: Final = "only machines divide a network over tiles"
_SEGMENTS: Final = "cpu and cuda keep less with memory=, the reference keeps all states"
RULES: Final[Mapping[str, Rule]] = {
    "steps": Rule("time steps of a sequence"),
    "batch": Rule("samples of a run or an update"),
    "loss": Rule("makes the network trainable"),
    "loss_output": Rule("which output or population the loss reads"),
    "optimizer": Rule("how parameters change"),
    "lr": Rule("learning rate of the optimizer", everywhere="with a loss"),
    "loss_scale": Rule(
        "factor of the loss's gradient",
        instead="its gradients are float32, which need none",
        everywhere="with a loss",
        targets=("reference", "cpu", "cuda"),
    ),
    "learnable": Rule("neuron parameters that training changes too", everywhere="with a loss"),
    "surrogate": Rule("derivative of a spike"),
    "gradient_window": Rule("which neurons take gradient"),
    "truncate": Rule("steps after which the gradient is cut", instead="the others go back through all steps"),
    "input_gradients": Rule(
        "the gradient of inputs too, for layers before the network", instead="snnc.torch.Module(net, input_gradients=True) returns it"
    ),
    "seed": Rule("order of samples, and what the mapping draws", instead="train.py of the package has a --seed of its own"),
    "capacity": Rule("spikes that one window moves", instead=_TILES),
    "mode": Rule("what happens to more spikes than a window holds", instead=_TILES),
    "drop": Rule("which spikes are kept in mode drop", instead="the lowest ids are kept"),
    "calibrate": Rule("data to measure the activity on", instead="only mappings ask how often neurons fire", flag="data"),
    "parts": Rule("parts that populations are cut into", idle=(1,), instead=_WHOLE),
    "recompute": Rule("segments that run forward again", idle=("off",), instead=_SEGMENTS),
    "streaming": Rule("what may wait outside the tiles", idle=("off",), instead=_SEGMENTS),
    "memory": Rule("bytes that a training step or a run may take", instead="machines have recompute= and streaming="),
    "threads": Rule("threads of the program", instead="it has no threads to choose"),
    "precision": Rule(
        "of products, of weights, of what is kept of the past",
        values={
            "bfloat16": "it computes in float32; machines keep the past as float16",
            "float16": "it computes in float32",
        },
        instead="it computes in float32",
    ),
    "dt": Rule("seconds a step, of a NIR file", everywhere="yes"),
    "detach": Rule("where gradients stop inside neurons, of a model file", everywhere="yes"),
    "input_kind": Rule("what the inputs hold", everywhere="yes"),
}
"""By the name in Python. Options of the model (steps, dt, detach, input_kind) are checked against it where it is read."""


LOSS_OUTPUT: Final = "The output, the population or the population.port that the loss reads."
"""What commands say of it."""


def requests_effect(name: str, value: Any, default: Any) -> bool:
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
        Option name to value, of those options that :func:`requests_effect` something.

    Raises
    ------
    OptionTargetError
        The target does not take one of them.
    OptionNeedsLossError
        One of them changes training alone, and there is no loss.
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
                f"{_shown(name, value)} changes training alone, and no loss is given, so nothing is trained; give a loss "
                "(--loss ce_count), or leave it out."
            )


def _shown(name: str, value: Any) -> str:
    """An option with its value, short, for a message."""
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
    """Return the help of a command's option, with the targets that take it in front.

    Examples
    --------
    >>> help_of("truncate", "cut the gradient every K steps.")
    'Targets reference, cpu, cuda, with --loss: cut the gradient every K steps.'
    """
    takers = {b: taken for b in BACKENDS if (taken := taken_by(name, b)) != "refused"}
    where = f"targets {', '.join(b.words.partition(' ')[0] for b in takers)}" if len(takers) < len(BACKENDS) else ""
    head = ", ".join(filter(None, (where, "with --loss" if set(takers.values()) == {"with a loss"} else "")))
    return f"{head[:1].upper()}{head[1:]}: {text}" if head else text
