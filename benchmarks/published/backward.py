"""Supersteps of the published program in one time step of the backward pass.

They follow ``loopBwd`` of ``poplar_code_stateBasedReset.cpp``, commit 2b0fe90. U is the membrane potential of a neuron, dU its gradient, dW
the gradient of the weights, K the capacity of a layer in ids per sample, and B the number of samples.
"""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.published.forward import FLAGS
from snnc.benchmarks.published.layout import ceil_div, linear_pieces, linear_share, slice_pieces, slice_share, usable_tiles
from snnc.benchmarks.published.machine import Exchange, Machine, Superstep
from snnc.benchmarks.published.net import PRIVATE_COPIES
from snnc.benchmarks.published.options import INNER, INNER_WIDE, OUTER, PARTIAL, SAMPLE, SLOPE, SLOPE_SCAN, prologue
from snnc.compiler.ir.arrays.sizes import FLOAT

FIRST_STAGE: Final = "reduce groups"
"""Name of the superstep that sums the input gradients over the tiles of each group."""


def backward(machine: Machine) -> tuple[Superstep, ...]:
    """Return the supersteps of a time step, in order; the first step of the sequence computes no input gradients."""
    layers = range(len(machine.net.layers))
    copies = machine.one_by_one([machine.local_copy(FLOAT * machine.net.batch * machine.per_tile(i)) for i in layers])
    return (
        machine.step("count steps", "rest", "backward", compute=2 * machine.elementwise(1), program_steps=2),
        _slice(machine),
        _decay(machine, "decay dU"),
        *(_surrogate_on_one_tile(machine) if machine.options.surrogate == "one tile" else _surrogate_everywhere(machine)),
        machine.step("copy dU", "rest", "backward", compute=copies, program_steps=machine.serial),
        _decay(machine, "scale dU"),
        *_broadcast_ids(machine),
        _weight_gradients(machine),
        _input_gradients(machine),
        _first_stage(machine),
        _second_stage(machine),
    )


def _slice(machine: Machine) -> Superstep:
    """Slice the histories for this step: each layer's ids and counts, read and sent, and states; the gradients of the readout's spikes."""
    net, tiles = machine.net, machine.tiles
    longest, number = 0.0, 0
    for chip in range(machine.layout.chips):
        sizes: list[int] = []
        for i in machine.layout.layers_of(chip):
            capacity, _, _ = machine.incoming(i)
            sent_capacity = net.layers[i].capacity
            sizes += [slice_share(net.batch * capacity, tiles), slice_share(FLAGS * net.batch, tiles)]
            sizes += [slice_share(net.batch * sent_capacity, tiles), slice_share(FLAGS * net.batch, tiles), net.batch * machine.per_tile(i)]
        if chip == machine.layout.chips - 1:
            sizes.append(slice_share(net.batch * net.layers[-1].capacity, tiles))
        longest, number = max(longest, sum(map(machine.dynamic, sizes))), max(number, len(sizes))
    return machine.step("slice histories", "dynamic slices", "backward", compute=longest, program_steps=number)


def _decay(machine: Machine, name: str) -> Superstep:
    """Multiply dU by a constant, for one layer after another."""
    layers = range(len(machine.net.layers))
    compute = machine.one_by_one([machine.broadcast_elementwise(machine.net.batch * machine.per_tile(i)) for i in layers])
    return machine.step(name, "rest", "backward", compute=compute, program_steps=machine.serial)


def _surrogate_on_one_tile(machine: Machine) -> tuple[Superstep, ...]:
    """Compute the surrogate of each layer and sample in one worker of one tile, which reads U, thresholds and dU and writes dU back."""
    net, code, gathers, scatters, compute = machine.net, machine.options.code, [], [], 0.0
    for i, (layer, where) in enumerate(zip(net.layers, machine.layout.ranges, strict=True)):
        vertices = ceil_div(net.batch * len(machine.layout.layers_of(where.chip)), machine.target.tiles_per_chip)
        row = ceil_div(layer.capacity, slice_share(net.batch * layer.capacity, machine.tiles))  # tiles with the ids of a sample and step
        pieces = 3 * where.tiles + row + 2
        from_another_chip = i + 1 < len(net.layers) and machine.reads_another_chip(i + 1)
        link = FLOAT * net.batch * layer.capacity * from_another_chip
        size = FLOAT * (3 * layer.neurons + 2 * layer.capacity + 1)
        gathers.append(Exchange(vertices * size, vertices * pieces, link=link))
        scatters.append(Exchange(sent=vertices * FLOAT * layer.neurons, sent_pieces=vertices * where.tiles))
        compute = max(compute, machine.vertices(vertices, prologue(6, code) + layer.gradients * SLOPE.cycles(code)))
    gather, scatter = machine.busiest(gathers), machine.busiest(scatters)
    return (
        machine.step("gather U and dU", "gather and scatter of U and dU", "backward", moves=(gather,), program_steps=0),
        machine.step("surrogate", "surrogate", "backward", compute=compute),
        machine.step("scatter dU", "gather and scatter of U and dU", "backward", moves=(scatter,), program_steps=0),
    )


def _surrogate_everywhere(machine: Machine) -> tuple[Superstep, ...]:
    """Compute the surrogate on every tile: it reads the ids and gradients of its layer, finds its own neurons and adds to their dU."""
    net, code, moves, compute = machine.net, machine.options.code, [], 0.0
    for i, layer in enumerate(net.layers):
        ids, from_another_chip = net.batch * layer.capacity, i + 1 < len(net.layers) and machine.reads_another_chip(i + 1)
        pieces = slice_pieces(ids, machine.tiles) + slice_pieces(FLAGS * net.batch, machine.tiles) + linear_pieces(ids, machine.tiles)
        moves.append(Exchange(FLOAT * (2 * ids + net.batch), pieces, link=FLOAT * ids * from_another_chip))
        on_tile = layer.gradients * machine.per_tile(i) / layer.neurons
        cycles = prologue(9, code) + layer.gradients * SLOPE_SCAN.cycles(code) + on_tile * SLOPE.cycles(code, loops=False)
        compute = max(compute, machine.vertices(net.batch, cycles))
    return (
        machine.step("broadcast gradients", "id broadcasts", "backward", moves=(machine.busiest(moves),), program_steps=0),
        machine.step("surrogate", "surrogate", "backward", compute=compute),
    )


def _broadcast_ids(machine: Machine) -> tuple[Superstep, ...]:
    """Send the ids and counts that a layer read to all of its tiles."""
    net, copies = machine.net, []
    for i in range(len(net.layers)):
        capacity, _, _ = machine.incoming(i)
        counts = net.batch * (1 if i == 0 else FLAGS)
        for size in (net.batch * capacity, counts):
            link = FLOAT * size * machine.reads_another_chip(i)
            copies.append((i, Exchange(FLOAT * size, slice_pieces(size, machine.tiles), link=link)))
    return machine.copies("broadcast ids", "id broadcasts", "backward", copies, same_tiles=False)


def _weight_gradients(machine: Machine) -> Superstep:
    """Compute dW in six vertices per tile, each with a private copy of dW and a sixth of the samples (rounded down)."""
    net, code, compute = machine.net, machine.options.code, 0.0
    for i in range(len(net.layers)):
        _, spikes, _ = machine.incoming(i)
        event = ceil_div(machine.per_tile(i), 2) * OUTER.cycles(code)
        samples = net.batch // PRIVATE_COPIES
        cycles = prologue(7, code) + samples * (SAMPLE.cycles(code) + spikes * event)
        compute = max(compute, machine.vertices(PRIVATE_COPIES, cycles))
    return machine.step("weight gradients", "event loops", "backward", compute=compute)


def _input_gradients(machine: Machine) -> Superstep:
    """Compute a tile's part of the gradient of every id, in one vertex per sample; the first layer has no input gradients."""
    net, code, compute = machine.net, machine.options.code, 0.0
    for i in range(1, len(net.layers)):
        _, _, entries = machine.incoming(i)
        vectors = ceil_div(machine.per_tile(i), 2)
        event = INNER.cycles(code) + (vectors - 1) * INNER_WIDE.cycles(code)
        compute = max(compute, machine.vertices(net.batch, prologue(5, code) + entries * event))
    return machine.step("input gradients", "event loops", "backward", compute=compute, runs=net.steps - 1)


# ---- reduction of the input gradients over the tiles of a layer -------------------------------------------------------


def groups(batch: int, tiles: int) -> tuple[int, int]:
    """Divide the tiles of a layer into equal groups; return their number and the size of the last one, which includes the remainder."""
    size = min(batch // 2, tiles)
    return tiles // size, size + tiles % size


def stage_tiles(machine: Machine, chip: int) -> dict[int, int]:
    """Return the number of tiles of `chip` that each layer uses in the first stage: in proportion to ``tiles^0.8 K B``, rounded down."""
    layers = [i for i in machine.layout.layers_of(chip) if i > 0]
    work = {i: int(machine.layout.ranges[i].tiles ** 0.8 * machine.incoming(i)[0] * machine.net.batch) for i in layers}
    usable = usable_tiles(machine.target, chip)
    return {i: max(1, int(layer_work / sum(work.values()) * usable)) for i, layer_work in work.items()}


def _first_stage(machine: Machine) -> Superstep:
    """Sum the input gradients over the tiles of each group."""
    net, code, moves, compute = machine.net, machine.options.code, [], 0.0
    for chip in range(machine.layout.chips):
        for i, tiles in stage_tiles(machine, chip).items():
            capacity, _, entries = machine.incoming(i)
            number, largest = groups(net.batch, machine.layout.ranges[i].tiles)
            vertices = ceil_div(number * net.batch * capacity, tiles)
            counts = ceil_div(vertices, capacity) + 1
            left, read = net.batch * capacity, vertices * largest + counts
            moves.append(Exchange(FLOAT * read, read, FLOAT * left, ceil_div(left, vertices)))
            active = min(vertices, entries) if vertices <= capacity else vertices * entries / capacity
            idle = machine.vertices(vertices, prologue(5, code)) - machine.vertices(active, prologue(5, code))
            busy = machine.vertices(active, prologue(5, code) + largest * PARTIAL.cycles(code))
            compute = max(compute, idle + busy)
    moved = machine.busiest(moves)
    return machine.step(FIRST_STAGE, "reduction", "backward", compute=compute, moves=(moved,), runs=net.steps - 1)


def _second_stage(machine: Machine) -> Superstep:
    """Sum over the groups with a PopLibs reduction on all tiles of the chip; send the sums to the tiles that read them next."""
    net, gathers, scatters, compute = machine.net, [], [], 0.0
    for chip in range(machine.layout.chips):
        layers = [i for i in machine.layout.layers_of(chip) if i > 0]
        sums = {i: net.batch * machine.incoming(i)[0] for i in layers}
        share = ceil_div(sum(sums.values()), machine.tiles) if layers else 0
        for i in layers:
            number, _ = groups(net.batch, machine.layout.ranges[i].tiles)
            gathers.append(Exchange(FLOAT * number * share, number))
            landed = min(sums[i], linear_share(sums[i], machine.tiles))
            scatters.append(Exchange(FLOAT * landed, ceil_div(landed, share)))
            compute = max(compute, machine.elementwise(2 * number * ceil_div(share, 2)))
    ends = (machine.busiest(gathers), machine.busiest(scatters))
    return machine.step("reduce all", "reduction", "backward", compute=compute, moves=ends, runs=net.steps - 1)
