"""Result of a verification: the size and the first step of the differences, for each layer and output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from snnc.frontends.onnx.writer.comparison import Comparison, PortComparison


@dataclass(frozen=True)
class LayerComparison:
    """Differences between two runs of the population `name`, whose neuron model is `neuron`.

    `source` is the implementation whose values are compared with snnc's. `spikes` compares the ports that fire, `states` the states and
    other outputs; `missing` are ports without a value in the other implementation.
    """

    name: str
    neuron: str
    source: str
    spikes: tuple[PortComparison, ...]
    states: tuple[PortComparison, ...]
    missing: tuple[str, ...] = ()

    @property
    def ports(self) -> tuple[PortComparison, ...]:
        """States, then spikes: a difference between membrane potentials may cause the difference between spikes in the same step."""
        return (*self.states, *self.spikes)

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return all(p.agrees for p in self.ports)

    @property
    def first(self) -> int | None:
        """First step with a difference; None if there is none."""
        return min((p.first for p in self.ports if p.first is not None), default=None)


@dataclass(frozen=True)
class Verification:
    """Two runs of one network, compared layer by layer and step by step.

    Attributes
    ----------
    target, against
        Target on which snnc ran the network, and name of the other implementation.
    inputs
        Shape of each input array, by name.
    stepwise
        Whether the file describes one time step, so that it ran step by step.
    layers, outputs
        Populations in the order of the network, and its outputs.
    note
        Reason if no layer was compared; otherwise empty.
    """

    target: str
    against: str
    inputs: dict[str, tuple[int, ...]]
    stepwise: bool
    layers: tuple[LayerComparison, ...]
    outputs: tuple[Comparison, ...]
    note: str = ""

    @property
    def agree(self) -> bool:
        """Whether all layers and outputs agree."""
        return all(layer.agrees for layer in self.layers) and all(c.agrees for c in self.outputs)

    @property
    def first(self) -> tuple[str, int, str] | None:
        """Layer, step and port of the earliest difference; at equal steps, in the first layer. None if no layer differs."""
        differing = [(layer.first, k) for k, layer in enumerate(self.layers) if layer.first is not None]
        if not differing:
            return None
        step, k = min(differing)
        return self.layers[k].name, step, next(p.port for p in self.layers[k].ports if p.first == step)

    def data(self) -> dict[str, Any]:
        """Return the result as JSON types."""
        first = self.first
        return {
            **{name: getattr(self, name) for name in ("agree", "target", "against", "stepwise", "note")},
            "inputs": {name: list(shape) for name, shape in self.inputs.items()},
            "first": None if first is None else dict(zip(("layer", "step", "port"), first, strict=True)),
            "outputs": [{**asdict(c), "agrees": c.agrees} for c in self.outputs],
            "layers": [_layer_data(layer) for layer in self.layers],
        }

    def lines(self, per_step: bool = False) -> Iterator[str]:
        """Yield the lines of a report; with `per_step`, show every layer step by step, else only layers with differences."""
        shapes = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in self.inputs.items())
        yield f"inputs: {shapes}{'; one step at a time, states fed back' if self.stepwise else ''}"
        if self.note:
            yield self.note
        else:
            head = ("layer", "neuron", "spikes", "fired", "differ", "first step", "largest difference of states")
            yield from _table([head, *map(_row, self.layers)])
            for layer in self.layers:
                yield from self._remarks(layer)
        for c in self.outputs:
            yield f"output {c.output}: {_output_text(c)}"
        for layer in self.layers:
            if per_step or not layer.agrees:
                yield f"{layer.name}, step by step:"
                yield from _table(list(_steps(layer)))
        yield self._verdict()
        if not self.agree:
            yield (
                "If a membrane potential equals its threshold within rounding, single spikes may differ; try other inputs with a different "
                "--seed."
            )

    def _remarks(self, layer: LayerComparison) -> Iterator[str]:
        if layer.ports and layer.source != self.against:
            yield f"{layer.name}: compared with {layer.source}."
        if layer.missing:
            yield f"{layer.name}: not compared, {self.against} has no such value: {', '.join(layer.missing)}."
        if layer.agrees and any(not p.fired for p in layer.spikes):
            yield f"{layer.name}: no neuron fired, so threshold and reset were not tested; try other inputs or more steps."

    def _verdict(self) -> str:
        if self.agree:
            return f"{self.against} and snnc ({self.target}) agree."
        first = self.first
        where = "" if first is None else f"; first in layer {first[0]!r} at step {first[1]}, in {first[2]!r}"
        return f"{self.against} and snnc ({self.target}) DISAGREE{where}."

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _layer_data(layer: LayerComparison) -> dict[str, Any]:
    spikes: dict[str, Any] | None = None
    if layer.spikes:
        steps = zip(*(p.by_step for p in layer.spikes), strict=True)
        spikes = {
            **_spike_counts(layer),
            "first": min((p.first for p in layer.spikes if p.first is not None), default=None),
            "by_step": [int(sum(n or 0 for n in row)) for row in steps],
        }
    states = [
        {
            "name": p.port,
            "values": p.values,
            "mismatches": p.mismatches,
            "largest": p.largest,
            "step": p.worst,
            "first": p.first,
            "compared": list(p.compared),
            "largest_by_step": list(p.by_step),
        }
        for p in layer.states
    ]
    head = {"name": layer.name, "neuron": layer.neuron, "agrees": layer.agrees, "source": layer.source}
    return {**head, "spikes": spikes, "states": states, "not_compared": list(layer.missing)}


def _spike_counts(layer: LayerComparison) -> dict[str, int]:
    return {what: sum(getattr(p, what) for p in layer.spikes) for what in ("values", "fired", "mismatches")}


def _row(layer: LayerComparison) -> tuple[str, ...]:
    counts = [f"{count:,}" if layer.spikes else "-" for count in _spike_counts(layer).values()]
    states = ", ".join(f"{p.port} {_number(p.largest)} (step {p.worst})" for p in layer.states if p.compared) or "-"
    first = "-" if layer.first is None else str(layer.first)
    return layer.name, layer.neuron, *counts, first, states


def _steps(layer: LayerComparison) -> Iterator[tuple[str, ...]]:
    ports = (*layer.spikes, *layer.states)
    yield ("  step", *(f"{p.port} differ" if p.fires else p.port for p in ports))
    for t in range(max((len(p.by_step) for p in ports), default=0)):
        values = [("-" if t not in p.compared else f"{p.by_step[t]:,.0f}" if p.fires else _number(p.by_step[t])) for p in ports]
        yield (f"  {t}", *values)


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _output_text(c: Comparison) -> str:
    if c.shapes[0] != c.shapes[1]:
        return f"snnc returns {list(c.shapes[0])}, the other implementation {list(c.shapes[1])}"
    what = "spikes" if c.spikes else "values"
    if c.agrees:
        return f"all {c.values:,} {what} {'equal' if c.spikes else f'agree, largest difference {c.largest or 0.0:.3g}'}"
    places = [f"{label} {n}" for label, n in (("step", c.step), ("sample", c.sample)) if n is not None]
    where = f", first at {', '.join(places)}" if places else ""
    return f"{c.mismatches:,} of {c.values:,} {what} differ{where}; largest difference {_number(c.largest)}"
