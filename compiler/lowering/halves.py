"""Numbers that a program stores as float16. Sums are float32.

With precision float16, and without the option `half`, a program that trains rounds its history. A program for inference has no history, and
rounds the weights of its connections. Weights that are updated stay float32 unless `half` requests float16 for them. An update below half a
unit in the last place of a float16 weight is lost, rounded stochastically, or kept as a remainder, depending on the rounding
(:mod:`snnc.compiler.losses.weight_rounding`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from snnc.compiler.errors import HalfLayersError, HalfNumbersError, HalfRangeError, NothingRoundedError
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_operations import BackwardOp, DenseInputGradient, InputGradient
from snnc.compiler.ir.step_program import ConnectionInfo, ConnectionKind, Parameter, StepProgram
from snnc.compiler.losses.optimizers import PART
from snnc.compiler.losses.weight_rounding import LARGEST, WeightRounding
from snnc.compiler.lowering.half_numbers import HalfLayers, HalfNumbers, HalfOption, half_text
from snnc.compiler.neurons.expression import ROUND, Assignment, Call
from snnc.compiler.neurons.neuron import NeuronModel

Half: TypeAlias = Literal["history", "weights", "deltas", "states"]
"""``"history"``: states and values of all steps that the adjoint reads; ``"weights"``: weights of connections in :data:`ROUNDED_KINDS`;
``"deltas"``: values that sources of dense connections read from their targets in the backward pass; ``"states"``: running states
(:func:`with_half_states`)."""
ROUNDED_KINDS: Final[frozenset[ConnectionKind]] = frozenset(("dense", "sparse", "convolution", "one_to_one"))
"""Connections whose weights may be float16; biases, factors of scales and weights shared by all neurons are few, and stay float32."""


@dataclass(frozen=True)
class Halves(Collection[Half]):
    """Kinds of numbers stored as float16, by layer. As a collection, it contains the kinds that are chosen for at least one layer."""

    default: frozenset[Half] = frozenset()  # kinds for layers that are not in `named`
    named: Mapping[str, frozenset[Half]] = field(default_factory=dict)  # kinds for populations and connections, by name

    def __contains__(self, kind: object) -> bool:
        return any(kind in kinds for kinds in (self.default, *self.named.values()))

    def __iter__(self) -> Iterator[Half]:
        return (kind for kind in get_args(Half) if kind in self)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def of(self, *labels: str) -> frozenset[Half]:
        """Return the kinds of the first of `labels` that `named` contains, or else the default; a part of a layer has the layer's kinds."""
        for label in labels:
            for name in (label, PART.sub("", label)):
                if name in self.named:
                    return self.named[name]
        return self.default

    def only(self, *kinds: Half) -> Halves:
        """Return the choice restricted to `kinds`."""
        return Halves(self.default & set(kinds), {name: chosen & set(kinds) for name, chosen in self.named.items()})


def halves_of(precision: Precision, half: HalfOption | None = None, *, trains: bool) -> Halves:
    """Return the kinds of numbers that a program stores as float16: those chosen by `half`, or implied by `precision`.

    An option that only training uses raises a HalfNumbersError if the program does not train.
    """
    if half is None:
        kind: Half = "history" if trains else "weights"
        return Halves(frozenset((kind,) if precision == "float16" else ()))
    if not trains and (half.history or half.deltas or half.weights not in (None, "nearest")):
        raise HalfNumbersError(
            f"half is {half_text(half)!r}, but without training only weights, rounded to the nearest, and states can be float16; "
            "use half='weights', 'states' or 'weights,states', or set a loss (--loss ce_count)."
        )
    if isinstance(half, HalfLayers):
        return Halves(_kinds(half.default), {name: _kinds(choice) for name, choice in half.named})
    return Halves(_kinds(half))


def _kinds(half: HalfNumbers | None) -> frozenset[Half]:
    return frozenset(kind for kind in get_args(Half) if half is not None and getattr(half, kind))


def run_halves(kinds: Halves) -> HalfOption | None:
    """Return which of `kinds` also round the numbers of a run without training; None if none does.

    Trained weights are rounded already; rounding to the nearest does not change them.
    """

    def chosen(of_layer: frozenset[Half]) -> HalfNumbers | None:
        rounds = "weights" in of_layer, "states" in of_layer
        return HalfNumbers("nearest" if rounds[0] else None, states=rounds[1]) if any(rounds) else None

    if not kinds.only("weights", "states"):
        return None
    if not kinds.named:
        return chosen(kinds.default)
    return HalfLayers(chosen(kinds.default), tuple((name, chosen(of_layer)) for name, of_layer in kinds.named.items()))


def with_half_states(model: NeuronModel) -> NeuronModel:
    """Return `model` with each value that is assigned to a state rounded to the nearest float16 number, ties to even.

    Every read of the state after the assignment, in this step (by a threshold or an output) or in the next, reads the rounded number. All
    other values are computed in float32. The derivative of rounding is 1.
    """
    rounded = (Assignment(a.target, Call(ROUND, (a.value,))) if a.target in model.states else a for a in model.equations)
    return replace(model, equations=tuple(rounded))


def rounding_of(half: HalfOption | None, seed: int) -> WeightRounding | None:
    """Return the rounding of updates of float16 weights; None without such weights."""
    return None if half is None or half.weights is None else WeightRounding(half.weights, seed)


def check_layers(half: Halves, program: StepProgram) -> None:
    """Check that every layer named in `half` exists (HalfLayersError), and has numbers of its kinds (NothingRoundedError)."""
    populations, connections = {p.id: p.label for p in program.populations}, [c.label for c in program.connections]
    labels_of_weights: dict[str, set[str]] = {}
    for c in program.connections:
        if c.weight is not None:
            labels_of_weights.setdefault(c.weight, set()).update((c.label, populations[c.target]))
    half_deltas = {op.target for op in program.backward if isinstance(op, DenseInputGradient) and op.half}
    rounded = {
        "weights": {label for weight in rounded_weights(program.parameters, program.connections) for label in labels_of_weights[weight]},
        "states": {p.label for p in program.populations if p.kernel.states},
        "history": {p.label for p in program.populations if p.kernel.rounded},
        "deltas": {p.label for p in program.populations if half_deltas & {*p.ports}},
    }
    for name, kinds in half.named.items():
        if name not in populations.values() and name not in connections:
            raise HalfLayersError(
                f"half names {name!r}, which is neither a population nor a connection; populations are {', '.join(populations.values())}, "
                f"connections {', '.join(connections) or 'none'}."
            )
        for kind in get_args(Half):
            if kind in kinds and name not in rounded[kind]:
                raise NothingRoundedError(f"{name!r} has no {kind} that can be float16; leave {kind} out of its part of half.")


def check_halves(chosen: Halves, program: StepProgram) -> None:
    """Raise a NothingRoundedError if a program has no numbers of a kind in `chosen.default`.

    :func:`check_layers` checks the kinds of named layers.
    """
    half = chosen.default
    if "states" in half and not any(p.kernel.halves for p in program.populations):
        raise NothingRoundedError(f"no population of {program.name!r} has a state; leave states out of half.")
    if "history" in half:
        check_history(any(p.kernel.rounded for p in program.populations), program)
    if "weights" in half and not any(parameter.half for parameter in program.parameters.values()):
        raise NothingRoundedError(
            f"{program.name!r} has no dense, sparse, convolution or one-to-one connection with a weight for each neuron, and only their "
            "weights are rounded; omit precision or half."
        )
    if "deltas" in half and not any(isinstance(op, DenseInputGradient) and op.half for op in program.backward):
        raise NothingRoundedError(
            f"{program.name!r} has no dense connection whose target returns a gradient only over dense connections, and only deltas "
            "of such targets are rounded; leave deltas out of half."
        )


def half_deltas(program: StepProgram, half: Halves) -> tuple[BackwardOp, ...]:
    """Return the backward operations, with deltas of the chosen layers rounded to float16 if only dense connections send them back."""
    others = {op.target for op in program.backward if isinstance(op, InputGradient) and not isinstance(op, DenseInputGradient)}
    chosen = {port for p in program.populations if "deltas" in half.of(p.label) for port in p.ports} - others
    return tuple(replace(op, half=True) if isinstance(op, DenseInputGradient) and op.target in chosen else op for op in program.backward)


def check_history(any_rounded: bool, program: StepProgram) -> None:
    """Raise a NothingRoundedError unless `any_rounded`: whether some value of the history of `program` is rounded to float16."""
    if not any_rounded:
        raise NothingRoundedError(
            f"no population of {program.name!r} stores a value that can be rounded to float16 without changing a decision of the "
            "backward pass; omit precision."
        )


def check_dense(program: StepProgram) -> None:
    """Raise a NothingRoundedError if a program has no dense connections, for a precision that applies only to their products."""
    if not any(connection.kind == "dense" for connection in program.connections):
        raise NothingRoundedError(
            f"{program.name!r} has no dense connection, but only weights of dense connections are rounded; omit precision."
        )


def rounded_weights(parameters: Mapping[str, Parameter], connections: Iterable[ConnectionInfo]) -> list[str]:
    """Return the distinct parameters that are weights of connections in :data:`ROUNDED_KINDS`, except weights shared by all neurons."""
    weights = dict.fromkeys(c.weight for c in connections if c.kind in ROUNDED_KINDS and c.weight is not None)
    return [weight for weight in weights if parameters[weight].value.size > 1]


def half_weights(program: StepProgram, half: Halves) -> dict[str, Parameter]:
    """Return the parameters, with the weights of the chosen connections rounded to float16."""
    parameters, populations = dict(program.parameters), {p.id: p.label for p in program.populations}
    chosen = [c for c in program.connections if "weights" in half.of(c.label, populations[c.target])]
    for weight in rounded_weights(program.parameters, chosen):
        parameter = parameters[weight]
        largest = float(np.abs(parameter.value).max())
        if largest > LARGEST:
            raise HalfRangeError(
                f"{parameter.label} has a weight of {largest:g}, but the largest float16 number is {LARGEST:g}; omit precision, or "
                "scale the weights."
            )
        parameters[weight] = replace(parameter, value=parameter.value.astype(np.float16).astype(np.float32), half=True)
    return parameters
