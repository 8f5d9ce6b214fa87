"""Clocks, loss, update and the programs that run the compute sets."""

from __future__ import annotations

import math
from typing import Final

from snnc.backends.poplar.errors import UnsupportedOnPoplarError
from snnc.backends.poplar.gradient_windows import REDUCE
from snnc.backends.poplar.moments import moments
from snnc.backends.poplar.network import Network
from snnc.backends.poplar.parameters import WEIGHT_ROWS
from snnc.backends.poplar.parts import Assembly, Body, VertexLoop, integer, number, scalar, vector
from snnc.backends.printing import c_literal
from snnc.compiler.losses import Loss, MeanSquaredCount
from snnc.compiler.optimizers import Adam, Optimizer

_ONE: Final = ("", "", "")
"""A single vertex, no loop."""
_TILE: Final = "0"


def add_clocks(net: Network, assembly: Assembly) -> None:
    """Two counters take turns, so that none is read and written in one compute set."""
    for name in ("first_clock", "second_clock"):
        assembly.variable("Tensor", name, f'layout.on_tile(poplar::INT, {{}}, "{name}", {_TILE})', "the iteration k")
    sets = [("relay_forward", "forward_neurons", 1)] + ([("relay_backward", "backward_neurons", -1)] if net.training else [])
    for first, second, step in sets:
        for compute_set, source, target, add in ((first, "first_clock", "second_clock", 0), (second, "second_clock", "first_clock", step)):
            fields = (scalar("Input", "int", "from", source), scalar("Output", "int", "to", target), integer("add", add))
            assembly.loop("clocks", VertexLoop(f"{compute_set}", *_ONE, compute_set, "Clock", _TILE, fields))
    if net.rounds:
        _add_decide(net, assembly, "forward")
    if net.backward_rounds:
        _add_decide(net, assembly, "backward")


def _add_decide(net: Network, assembly: Assembly, part: str) -> None:
    limited = [bus for bus in net.plan.buses if net.limited(bus, backward=part == "backward")]
    assembly.variable(
        "Tensor", "again", f'layout.on_tile(poplar::BOOL, {{}}, "again", {_TILE})', "some window holds more than its capacity"
    )
    rounds = assembly.variable("Tensor", f"{part}_round_count", f'layout.on_tile(poplar::UNSIGNED_INT, {{1}}, "{part}_rounds", {_TILE})')
    assembly.tensors.append(f'counter("{part}_rounds", {rounds});')
    flags = ", ".join(f"{bus.id}_more.all" for bus in limited)
    fields = (
        vector("Input", "unsigned", "more", f"poplar::concat(std::vector<Tensor>{{{flags}}})"),
        scalar("Output", "bool", "again", "again"),
        scalar("InOut", "unsigned", "rounds", f"{rounds}[0]"),
        number("count", " + ".join(f"{bus.buffer}_relays.size()" for bus in limited)),
    )
    assembly.loop("clocks", VertexLoop(f"{part} rounds", *_ONE, f"{part}_decide", "Decide", _TILE, fields))


def add_loss(net: Network, assembly: Assembly) -> Body:
    """Add loss and learning-rate vertices; return what the loss's template needs."""
    output = next(o for o in net.program.outputs if o.id == net.program.loss_output)
    population = next(p for p in net.program.populations if output.source.buffer in net.step(p.id).outputs)
    classes = net.neurons[population.id]
    assembly.variable("Tensor", "labels", 'spread_samples(poplar::INT, "labels", loss_tiles)', "class of each sample")
    assembly.variable("Tensor", "losses", 'spread_samples(poplar::FLOAT, "losses", loss_tiles)')
    assembly.variable("Tensor", "loss", f'layout.on_tile(poplar::FLOAT, {{1}}, "loss", {_TILE})')
    assembly.variable("Tensor", "lr", f'layout.on_tile(poplar::FLOAT, {{1}}, "lr", {_TILE})', "learning rate")
    assembly.variable("Tensor", "optimizer_step", f'layout.on_tile(poplar::INT, {{1}}, "optimizer_step", {_TILE})')
    assembly.variable("Tensor", "rates", f'layout.on_tile(poplar::FLOAT, {{2}}, "rates", {_TILE})', "what the update reads")
    assembly.tensors += [
        'tensor("loss", SNNC_RESULT, {1}, loss, {}, false);',
        'tensor("lr", SNNC_SETTING, {1}, lr, {}, true);',
        'tensor("optimizer_step", SNNC_SETTING, {1}, optimizer_step, {}, true, SNNC_INT32);',
        f"label_input(labels, {classes}, load_labels);",
    ]
    adjoint, p = f"d_{output.record}", population.id
    fields = (
        vector("Input", "float", "records", f"of_sample({p}, {output.record}, STEPS, i)"),
        vector("Input", "unsigned", "offset", f"layout.constants(class_offsets({p}, STEPS), loss_tiles.at(i, 0))"),
        vector("Input", "unsigned", "stride", f"layout.constants(class_strides({p}), loss_tiles.at(i, 0))"),
        scalar("Input", "int", "label", "labels[i]"),
        vector("Output", "float", "adjoint", f"of_sample({p}, {adjoint}, STEPS, i)"),
        vector("Output", "float", "scratch", f'layout.on_tile(poplar::FLOAT, {{{classes}}}, "scores", loss_tiles.at(i, 0))'),
        scalar("Output", "float", "loss", "losses[i]"),
        integer("steps", "STEPS"),
        number("classes", classes),
    )
    assembly.loop(
        "loss",
        VertexLoop("one vertex a sample", "std::size_t", "i", "samples_of(BATCH)", "loss_samples", "Loss", "loss_tiles.at(i, 0)", fields),
    )
    total = (vector("Input", "float", "losses", "losses"), scalar("Output", "float", "total", "loss[0]"), number("count", "BATCH"))
    assembly.loop("loss", VertexLoop("their sum", *_ONE, "loss_sum", "LossSum", _TILE, total))
    rates = (
        scalar("Input", "float", "lr", "lr[0]"),
        scalar("InOut", "int", "step", "optimizer_step[0]"),
        vector("Output", "float", "rates", "rates"),
    )
    assembly.loop("loss", VertexLoop("the learning rate", *_ONE, "loss_sum", "Schedule", _TILE, rates))
    return loss_context(net.program.loss, net.plan.batch, net.plan.steps, classes)


def loss_context(loss: Loss | None, batch: int, steps: int, classes: int) -> Body:
    """Numbers of a loss, as C++ literals."""
    if loss is None or loss.name not in {"ce_count", "ce_rate", "ce_mean_membrane", "ce_max_membrane", "mse_count"}:
        raise UnsupportedOnPoplarError(f"the loss {getattr(loss, 'name', None)!r} has no Poplar template.")
    found = {"title": loss.name, "batch": c_literal(float(batch))}
    if isinstance(loss, MeanSquaredCount):
        found |= {
            "correct": c_literal(float(int(steps * loss.correct_rate))),
            "incorrect": c_literal(float(int(steps * loss.incorrect_rate))),
            "factor": c_literal(2 / (batch * classes * steps)),
            "share": c_literal(1 / (batch * classes * steps)),
        }
    return found


def optimizer_context(optimizer: Optimizer | None) -> Body:
    """Numbers of an optimiser, as C++ literals."""
    if isinstance(optimizer, Adam):
        return {
            "beta2": c_literal(optimizer.beta2),
            "one_minus_beta1": c_literal(1 - optimizer.beta1),
            "one_minus_beta2": c_literal(1 - optimizer.beta2),
            "epsilon": c_literal(optimizer.epsilon),
            "log_beta1": c_literal(math.log(optimizer.beta1) if optimizer.beta1 > 0 else -math.inf),
            "log_beta2": c_literal(math.log(optimizer.beta2) if optimizer.beta2 > 0 else -math.inf),
        }
    return {"moments": moments(optimizer), "momentum": c_literal(optimizer.momentum if optimizer else 0.0)}


def programs(net: Network) -> list[str]:
    """The engine's programs, as C++: refresh, forward, training step."""
    lines = [
        "Sequence refresh;",
        'to_replicas.end(refresh, "U2 replicas");',
        'to_readers.end(refresh, "U2 shared numbers");',
        *([f"refresh.add(Execute({WEIGHT_ROWS}));"] if net.copied_rows else []),
        "Sequence forward_step{Execute(relay_forward)};",
    ]
    if net.rounds:
        lines += [
            "// Exact: further windows as long as one holds more than its capacity.",
            "forward_step.add(RepeatWhileTrue(Execute(forward_decide), again, Sequence{Execute(forward_gather), Execute(forward_next)}));",
        ]
    lines += [
        "forward_step.add(Execute(forward_neurons));",
        "Sequence forward{load_inputs, Copy(constant(0), first_clock), Repeat(ITERATIONS, forward_step)};",
    ]
    start = "Sequence{Execute(zero_currents), refresh}" if net.rounds else "refresh"
    if not net.training:
        return [*lines, f"return {{{start}, forward}};"]
    shared = any(net.weight_gradient(id_) for id_ in net.indexed)
    replicated = any(p.replicas > 1 for p in net.plan.populations)
    sums = [*(["sum_private_gradients"] if replicated or shared else []), *(["sum_shared_gradients"] if shared else [])]
    update = ", ".join(f"Execute({name})" for name in [*sums, "update_parameters"])
    reduced = f", Execute({REDUCE})" if any(bus.gradient is not None for bus in net.plan.buses) else ""
    lines += [f"Sequence backward_step{{Execute(relay_backward), Execute(backward_neurons){reduced}}};"]
    if net.backward_rounds:
        lines += [
            f"const Sequence backward_window{{Execute(backward_next), Execute(backward_rounds){reduced}}};",
            "backward_step.add(RepeatWhileTrue(Execute(backward_decide), again, backward_window));",
        ]
    return [
        *lines,
        "Sequence train{load_labels, forward, Execute(loss_samples), Execute(loss_sum), Copy(constant(ITERATIONS - 1), first_clock),",
        f"               Repeat(ITERATIONS, backward_step), {update}, refresh}};",
        f"return {{{start}, forward, train}};",
    ]
