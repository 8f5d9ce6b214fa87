"""The losses, optimisers, schedules and precisions in the tables of ``docs/reference/training.md``, and why a target refuses one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from snnc.backends.registry import AnyBackend
from snnc.backends.training.schedules.text import FORMS
from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Graph
from snnc.compiler.losses.named_terms import COMPARED, REGULARISED, REGULARISERS
from snnc.compiler.losses.term import STATISTICS
from snnc.compiler.lowering.half_numbers import KINDS, ROUNDINGS
from snnc.options.compile_options import PRECISIONS

HIDDEN: Final = "hidden"
"""Name of the population that the regularisers read in the tables."""


def loss_rows() -> tuple[str, ...]:
    """Return every loss: criteria over statistics, samples of different lengths, kinds of targets, several outputs per class, …"""
    compared = [f"{criterion}_{name}" for criterion in ("ce", "mse") for name in COMPARED]
    return (
        *compared,
        *(f"{text}:lengths" for text in compared),
        "ce_count:classes=3",
        "mse_count:classes=3",
        "ce_membrane:targets=step_classes",
        "mse_membrane:targets=step_classes",
        "mse_membrane:targets=step_values",
        *(f"mse_{name}:targets=values" for name in COMPARED),
        *(f"mse_{name}:targets=values,lengths" for name in COMPARED),
        *(f"equation[abs(x - y)]:statistic={statistic},port={_PORT[statistic]},targets=values" for statistic in STATISTICS),
        "equation[abs(x - y)]:statistic=steps,targets=step_values",
        *(f"ce_count + 0.5*{text}" for text in regulariser_texts()),
    )


_PORT: Final = {statistic: "spikes" if statistic in ("count", "first_spike") else "membrane" for statistic in STATISTICS}
_BOUNDS: Final = {"rate": 0.2, "membrane": -0.1}


def regulariser_texts() -> Iterator[str]:
    """Yield every regulariser, applied to a hidden population."""
    for kind, equation in REGULARISERS.items():
        for read in REGULARISED:
            yield f"{kind}_{read}:of={HIDDEN}" + (f",bound={_BOUNDS[read]}" if "{0}" in equation else "")


def optimizer_rows() -> tuple[str, ...]:
    """Return every optimiser, its flags, every setting shared by all optimisers, and the settings of a parameter group."""
    settings = ("weight_decay=0.1", "l1=0.02", "bound=0.3", "clip_value=0.01", "clip_norm=0.1", "accumulate")
    groups = ("weight_decay=0.2", "l1=0.02", "bound=0.3", "lr=0.1", "frozen")
    return (
        "sgd:0.1",
        "sgd:0.1,0.9",
        "sgd:0.1,0.9,nesterov",
        "adam:0.01",
        "adamw:0.01",
        "rmsprop:0.01",
        "rmsprop:0.01,momentum=0.9",
        "rmsprop:0.01,centered",
        *(f"adam:0.01,{setting}" for setting in settings),
        "adam:0.01,loss_scale=1024",
        "adam:0.01,loss_scale=dynamic",
        *(f"adam:0.01; *.bias: {setting}" for setting in groups),
    )


def schedule_rows() -> tuple[str, ...]:
    """Return an example of every schedule of the learning rate."""
    return tuple(form.strip() for form in FORMS.split(";"))


def precision_rows() -> tuple[str, ...]:
    """Return every precision except float32, every kind of values that may be float16, and every rounding of weights."""
    halves = (*(f"weights:{rounding}" for rounding in ROUNDINGS), *(kind for kind in KINDS if kind != "weights"), ",".join(KINDS))
    return (*(f"precision={name}" for name in PRECISIONS if name != "float32"), *(f"half={text}" for text in halves))


def refusal(
    backend: AnyBackend, graph: Graph, loss: str, optimizer: str, steps: int, precision: str = "precision=float32"
) -> SnncError | None:
    """Return the error with which a target refuses to train `graph` with these options; None if it accepts them."""
    from snnc.driver.lowering import lower_graph
    from snnc.options.compile_options import options

    try:
        name, _, value = precision.partition("=")
        target = backend.name if backend.about else "gc200"  # stands for all machines: their backend has no description of its own
        chosen = options(target, loss=loss, optimizer=optimizer, steps=steps, **{name: value})  # type: ignore[arg-type]  # options accept text
        backend.check(lower_graph(graph, chosen).program, chosen.for_backend())
    except SnncError as error:
        return error
    return None
