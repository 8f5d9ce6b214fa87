"""Texts that state snnc's assumptions about a model, one per subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from snnc.compiler.ir.graph import Array, Graph, Input, Population
from snnc.compiler.neurons.surrogates.library import atan
from snnc.compiler.neurons.surrogates.surrogate import Surrogate
from snnc.understanding.equations import range_text
from snnc.understanding.resets import FiringDescription


def statements(graph: Graph, firings: Mapping[str, FiringDescription], surrogate: Surrogate | None = None) -> list[dict[str, Any]]:
    """Return texts about the subjects time step, reset, surrogate, initial states and input axes, as JSON types."""
    texts = [
        ("time step", _time(graph)),
        ("reset", _resets(firings)),
        ("surrogate", _surrogate(graph, firings, surrogate)),
        ("initial states", _initial(graph)),
        ("input axes", _axes(graph)),
    ]
    return [{"about": about, "text": text} for about, text in texts if text]


def _time(graph: Graph) -> str:
    if any("dt = " in text for text in graph.assumptions):
        return ""  # a note of the frontend already states it
    return "discrete: decays are factors per step, and the equations do not contain the length of a step in seconds (dt)."


def _resets(firings: Mapping[str, FiringDescription]) -> str:
    groups: dict[str, list[str]] = {}
    for name, about in firings.items():
        if about.reset is not None:
            gradient = "" if about.gradient is None else f"; {about.gradient}"
            groups.setdefault(f"{about.reset}{gradient}", []).append(name)
    if len(groups) == 1:
        return f"{next(iter(groups))}."
    return " ".join(f"{', '.join(names)}: {words}." for words, names in groups.items())


def _surrogate(graph: Graph, firings: Mapping[str, FiringDescription], chosen: Surrogate | None) -> str:
    spiking = [(n, p) for n, p in graph.of_type(Population) if firings[n].fires is not None]
    if not spiking:
        return ""
    by_surrogate: dict[str, list[str]] = {}
    for name, population in spiking:
        if population.surrogate is not None:
            by_surrogate.setdefault(str(population.surrogate), []).append(name)
    texts = [f"{', '.join(names)}: {text}, from the model." for text, names in by_surrogate.items()]
    if texts and all(p.surrogate is not None for _, p in spiking):
        return " ".join(texts)
    if chosen is not None:
        return " ".join([*texts, f"{chosen}, as chosen, for {'all others' if texts else 'every spike'}."])
    whom = "for all others" if texts else "for every spike"
    return " ".join([*texts, f"not in the model; training uses {atan()} {whom}, or the option --surrogate (such as fast_sigmoid:25)."])


def _initial(graph: Graph) -> str:
    at_zero: list[str] = []
    others: list[tuple[str, Array]] = []
    for name, population in graph.of_type(Population):
        for state, default in population.model.states.items():
            value = np.asarray(population.initial.get(state, default))
            if value.any():
                others.append((f"{name}.{state}", value))
            else:
                at_zero.append(f"{name}.{state}")
    if not at_zero and not others:
        return ""
    texts = [f"{name} starts at {range_text(value)}" for name, value in others]
    if at_zero:
        texts.append("all others at 0" if others else "every state starts at 0")
    settable = ", ".join(graph.state_inputs)
    return f"{', '.join(texts)}{f'; a caller may set {settable}' if settable else ''}."


def _axes(graph: Graph) -> str:
    texts = []
    for name, operation in graph.of_type(Input):
        names = [str(n) for n in operation.shape]
        layout = operation.layout
        places = [(axis, word) for axis, word in ((layout.time_axis, "time"), (layout.batch_axis, "batch")) if axis is not None]
        for axis, word in sorted(places):
            names.insert(axis, word)
        static = "" if layout.time_axis is not None else ", the same at every step"
        texts.append(f"{name} is [{', '.join(names)}]{static}")
    return f"{'; '.join(texts)}." if texts else ""
