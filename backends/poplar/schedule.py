"""Clocks, update and the programs that run the compute sets."""

from __future__ import annotations

from snnc.backends.poplar.clocks import clock, set_clock
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly
from snnc.backends.poplar.streaming import NEXT_ROW, ROW, ROW_BEFORE, move_row
from snnc.backends.poplar.vertices.external import SUM
from snnc.backends.poplar.vertices.gradient_windows import REDUCE
from snnc.backends.poplar.vertices.indexed import SHARED_SUMS
from snnc.backends.poplar.vertices.losses import loads_targets_late, loss_sets
from snnc.backends.poplar.vertices.norms import norm_sets
from snnc.backends.poplar.vertices.parameters import PACKED_ROWS, WEIGHT_ROWS
from snnc.backends.poplar.vertices.recompute import RESTORE, SAVE
from snnc.backends.poplar.vertices.relay_segments import counters
from snnc.backends.poplar.vertices.relays import JOIN, joins
from snnc.backends.poplar.vertices.updates import accumulates
from snnc.backends.poplar.vertices.window_tests import loop


def add_clocks(net: PoplarNetwork, assembly: Assembly) -> None:
    """Two counters of each IPU take turns, so that none is read and written in one compute set."""
    for name in ("first_clock", "second_clock"):
        assembly.variable("OnIpus", name, f'layout.on_ipus("{name}", IPUS)', "the iteration k")
    forward = (JOIN if net.fused else "relay_forward", "forward_neurons", 1)
    sets = [forward] + ([("relay_backward", "backward_neurons", -1)] if net.training else [])
    for first, second, step in sets:
        for compute_set, source, target, add in ((first, "first_clock", "second_clock", 0), (second, "second_clock", "first_clock", step)):
            assembly.loop("clocks", clock(compute_set, source, target, add))


def programs(net: PoplarNetwork, assembly: Assembly) -> list[str]:
    """The engine's programs, as C++: refresh, forward, training step; with an external loss, its backward half alone."""
    lines, start = sequences(net, assembly), start_program(net)
    if not net.training:
        return [*lines, f"return {{{start}, forward}};"]
    if net.external:
        # The past of the forward pass stays on the tiles until the host has sent the adjoint of the output.
        sums = ", ".join([*gradient_sums(net), f"Execute({SUM})"])
        return [*lines, f"return {{{start}, forward, Sequence{{load_labels, backward, {sums}}}}};"]
    losses = ", ".join(f"Execute({name})" for name in loss_sets(net))
    norm = [f"Execute({name})" for name in norm_sets(net)]
    update = ", ".join([*gradient_sums(net), *norm, "Execute(update_parameters)"])
    changed = "program::If(updating, refresh, Sequence{})" if accumulates(net) else "refresh"
    before = "forward, load_labels" if loads_targets_late(net) else "load_labels, forward"
    return [
        *lines,
        f"Sequence train{{{before}, {losses}, Execute(loss_sum), backward, {update}, {changed}}};",
        f"return {{{start}, forward, train}};",
    ]


def start_program(net: PoplarNetwork) -> str:
    """C++ program that runs after parameters change."""
    return "Sequence{Execute(zero_currents), refresh}" if net.further.forward else "refresh"


def gradient_sums(net: PoplarNetwork) -> list[str]:
    """C++ programs that sum gradients before parameters are updated, in order."""
    shared = any(net.weight_gradient(id_) for id_ in net.indexed)
    replicated = any(p.replicas > 1 for p in net.plan.populations)
    return [*(["Execute(sum_private_gradients)"] if replicated or shared else []), *([SHARED_SUMS] if shared else [])]


def sequences(net: PoplarNetwork, assembly: Assembly) -> list[str]:
    """C++ that declares ``refresh``, ``forward`` and, with training, ``backward``."""
    lines = [
        "Sequence refresh;",
        'to_replicas.end(refresh, "U2 replicas");',
        'to_readers.end(refresh, "U2 shared numbers");',
        *([f"refresh.add(Execute({PACKED_ROWS}));"] if net.packed_rows else []),
        *([f"refresh.add(Execute({WEIGHT_ROWS}));"] if net.copied_rows else []),
        _relays_first(net),
    ]
    if net.further.forward:
        lines += [
            "// Exact: further windows, as many as some sample of some source needs.",
            *loop(net, "forward", "Sequence{Execute(forward_gather), Execute(forward_next)}"),
        ]
    lines += ["forward_step.add(Execute(forward_neurons));", *_forward(net, assembly)]
    if not net.training:
        return lines
    if SHARED_SUMS in gradient_sums(net):
        lines += [*_begun(assembly, SHARED_SUMS), f"{SHARED_SUMS}.add(Execute(sum_shared_gradients));"]
    reduced = f", Execute({REDUCE})" if any(bus.gradient is not None for bus in net.plan.buses) else ""
    lines += [f"Sequence backward_step{{Execute(relay_backward), Execute(backward_neurons){reduced}}};"]
    if net.further.backward:
        lines += [
            f"const Sequence backward_window{{Execute(backward_next), Execute(backward_rounds){reduced}}};",
            *loop(net, "backward", "backward_window"),
        ]
    return [*lines, *_backward(net, assembly)]


def _relays_first(net: PoplarNetwork) -> str:
    """The work of relays in an iteration before neurons; if they look for spikes at the same time, they only join their results."""
    if net.fused:
        return f"Sequence forward_step{{Execute({JOIN})}};"
    return f"Sequence forward_step{{Execute(relay_forward){f', Execute({JOIN})' if joins(net) else ''}}};"


def _forward(net: PoplarNetwork, assembly: Assembly) -> list[str]:
    """All iterations; with recompute, the next segment's initial states are stored at the end of a segment."""
    loaded = [
        *_begun(assembly, "forward"),
        "forward.add(load_inputs);",
        'initial_states.end(forward, "F0 initial states");',
    ]
    if net.fused:
        iterations, zeros = (", ".join(name.format(buffer) for buffer in net.stores) for name in ("{}_iteration.all", "zero.at({}_relays)"))
        return [
            "const OnIpus zero = layout.on_ipus(0, IPUS);",
            f"const Tensor iterations = poplar::concat(std::vector<Tensor>{{{iterations}}});",
            f"const Tensor zeros = poplar::concat(std::vector<Tensor>{{{zeros}}});",
            *loaded,
            'forward.add(Sequence{Copy(zero.all, first_clock.all), Copy(zeros, iterations, false, "F0 counters"),',
            f"                     Repeat({net.forward_iterations}, forward_step)}});",
        ]
    if not net.plan.segment:
        return [
            *loaded,
            f"forward.add(Sequence{{{set_clock('first_clock', '0')}, Repeat(ITERATIONS, forward_step)}});",
        ]
    load, save = _load(net), [f"Execute({SAVE})"] if net.plan.segments.reruns else []
    row = {"boundaries": [move_row(NEXT_ROW), "to_streaming"], "history": ["to_streaming", move_row(NEXT_ROW)]}.get(net.plan.streamed, [])
    start = [f"Copy(constant(0), {ROW})"] if row else []
    first = ", ".join([*load, "Repeat(SEGMENT, forward_step)", *save, *row])
    begin = ["load_inputs", set_clock("second_clock", "SEGMENT"), f"Execute({RESTORE})", *start]
    last = [*load, "Repeat(LAST_SEGMENT, forward_step)"]
    return [
        f"const Sequence first_run{{{first}}};",
        *_begun(assembly, "forward"),
        f"forward.add(Sequence{{{', '.join(begin)}, Repeat(SEGMENTS - 1, first_run),",
        f"                     {', '.join(last)}}});",
    ]


def _load(net: PoplarNetwork) -> list[str]:
    """Code that fills the relays of inputs before a segment runs."""
    return [] if net.plan.streamed == "off" else ["load_segment"]


def _begun(assembly: Assembly, part: str) -> list[str]:
    """A part of a step, which at first forgets what the previous step left."""
    forgotten = assembly.forgotten.get(part, [])
    return [f"Sequence {part};", *([f"forget({part}, {{{', '.join(forgotten)}}});"] if forgotten else [])]


def _backward(net: PoplarNetwork, assembly: Assembly) -> list[str]:
    """All iterations from the last to the first; each segment except the last first runs forward again, or its history is restored."""
    if not net.plan.segment:
        return [
            *_begun(assembly, "backward"),
            f"backward.add(Sequence{{{set_clock('first_clock', 'ITERATIONS - 1')}, Repeat(ITERATIONS, backward_step)}});",
        ]
    turn, counted = "Copy(second_clock.all, first_clock.all)", counters(net)
    row = [move_row(ROW_BEFORE), "from_streaming"] if net.plan.segments.rows else []
    again = [f"Execute({RESTORE})", *_load(net), "Repeat(SEGMENT, forward_step)", turn] if net.plan.segments.reruns else []
    lines = [
        f"const Sequence second_run{{{', '.join([*row, *again, 'Repeat(SEGMENT, backward_step)'])}}};",
        *_begun(assembly, "backward"),
        f"backward.add(Sequence{{{turn}, Repeat(LAST_SEGMENT, backward_step), Repeat(SEGMENTS - 1, second_run)}});",
    ]
    if not counted or not net.plan.segments.reruns:
        return lines
    first, kept = (", ".join(f"{name}{end}{access}" for name, access in counted) for end in ("", "_first"))
    tensors = f"counted = poplar::concat(std::vector<Tensor>{{{first}}}), counted_first = poplar::concat(std::vector<Tensor>{{{kept}}})"
    return [
        *lines,
        "// What finds no room is counted in the first run alone.",
        f"const Tensor {tensors};",
        "backward = Sequence{Copy(counted, counted_first), backward, Copy(counted_first, counted)};",
    ]
