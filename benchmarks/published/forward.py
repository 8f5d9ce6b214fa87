"""Supersteps of the published program in one time step of the forward pass.

They follow ``loopFwd`` of ``poplar_code_stateBasedReset.cpp``, commit 2b0fe90.
"""

from __future__ import annotations

from typing import Final

from snnc.benchmarks.published.layout import ceil_div, linear_pieces, linear_share, slice_pieces, slice_share
from snnc.benchmarks.published.machine import Exchange, Machine, Superstep
from snnc.benchmarks.published.options import CHUNK, CURRENT, CURRENT_WIDE, FOUND, MOVE, NEURON, SCAN, THRESHOLDS, prologue
from snnc.compiler.ir.arrays.sizes import FLOAT

RANDOM: Final = 7.0
"""Worker cycles of a random integer: assumed to be those of an integer addition. The program draws the numbers but never uses them."""
FLAGS: Final = 2
"""Number of thresholds of a neuron; each threshold has its own flags and counts."""


def forward(machine: Machine) -> tuple[Superstep, ...]:
    """Return the supersteps of a time step, in order."""
    return (
        machine.step("count steps", "rest", "forward", compute=machine.elementwise(1)),
        *_slice_inputs(machine),
        *_send_ids(machine),
        _update_states(machine),
        *_flags(machine),
        *_compact(machine),
        *_write_histories(machine),
    )


def _slice_inputs(machine: Machine) -> tuple[Superstep, ...]:
    net = machine.net
    return tuple(
        machine.step(f"slice input {what}", "dynamic slices", "forward", compute=machine.dynamic(slice_share(size, machine.tiles)))
        for what, size in (("ids", net.batch * net.input_capacity), ("counts", net.batch))
    )


def _send_ids(machine: Machine) -> tuple[Superstep, ...]:
    """Copy the ids of the previous step from the tiles that compacted them to the tiles of the next layer."""
    net, copies = machine.net, []
    for i in range(1, len(net.layers)):
        ids = net.batch * net.layers[i - 1].capacity
        for size, tensor in ((ids, ids), (net.batch, FLAGS * net.batch)):
            share = min(size, linear_share(size, machine.tiles))
            pieces = ceil_div(share, slice_share(tensor, machine.tiles))
            copies.append((i, Exchange(FLOAT * share, pieces, link=FLOAT * size * machine.reads_another_chip(i))))
    return machine.copies("pass ids on", "id broadcasts", "forward", copies, same_tiles=True)


def _update_states(machine: Machine) -> Superstep:
    """Update the neurons of each tile from all ids that the layer reads, in one vertex per sample."""
    net, code, compute, moves = machine.net, machine.options.code, 0.0, []
    for i in range(len(net.layers)):
        capacity, spikes, _ = machine.incoming(i)
        ids, neurons = net.batch * capacity, machine.per_tile(i)
        pieces = slice_pieces if i == 0 else linear_pieces
        moves.append(Exchange(FLOAT * (ids + net.batch), pieces(ids, machine.tiles) + pieces(net.batch, machine.tiles)))
        vectors = ceil_div(neurons, 2)
        event = (CURRENT if neurons <= 2 else CURRENT_WIDE).cycles(code)
        cycles = prologue(8, code) + vectors * spikes * event + neurons * NEURON.cycles(code, loops=False)
        compute = max(compute, machine.vertices(net.batch, cycles))
    return machine.step("update states", "event loops", "forward", compute=compute, moves=(machine.busiest(moves),))


def _flags(machine: Machine) -> tuple[Superstep, ...]:
    """Set two flags per neuron and sample, in one vertex per neuron and sample; then draw random numbers for one layer after another."""
    net, code = machine.net, machine.options.code
    neurons = max(machine.per_tile(i) for i in range(len(net.layers)))
    cycles = prologue(5, code) + THRESHOLDS.cycles(code, loops=False)
    numbers = machine.elementwise(2 * machine.target.workers, 2 * RANDOM)
    return (
        machine.step("set flags", "flags and compaction", "forward", compute=machine.vertices(net.batch * neurons, cycles)),
        machine.step("random offsets", "rest", "forward", compute=machine.serial * numbers, program_steps=machine.serial),
    )


def _compact(machine: Machine) -> tuple[Superstep, ...]:
    """Gather the flags of each sample and threshold on the tiles that compact them, and convert them to ids in three stages."""
    net, layout, workers = machine.net, machine.layout, machine.target.workers
    gathers, pulls, scatters = [], [], []
    scan = join = merge = 0.0
    for i, (layer, where, spread) in enumerate(zip(net.layers, layout.ranges, layout.spread, strict=True)):
        compactions, code = layout.max_compactions[where.chip], machine.options.code
        read = compactions * ceil_div(layer.neurons, spread)
        sent = FLAGS * net.batch * machine.per_tile(i)
        gathers.append(Exchange(FLOAT * read, read, FLOAT * sent, sent))
        threads = min(workers * spread, layer.neurons)
        most = max(layer.spikes, layer.gradients - layer.spikes)
        scanned = ceil_div(layer.neurons, threads) * SCAN.cycles(code) + most / threads * FOUND.cycles(code, loops=False)
        scan = max(scan, machine.vertices(compactions * min(workers, layer.neurons), prologue(7, code) + scanned))
        joined = prologue(7, code) + min(workers, layer.neurons) * CHUNK.cycles(code) + most / spread * MOVE.cycles(code)
        join = max(join, machine.vertices(compactions, joined))
        ids = min(layer.capacity, ceil_div(layer.neurons, spread))
        senders = FLAGS * spread - 1
        pulls.append(Exchange(FLOAT * senders * (ids + 1), 2 * senders))
        merged = prologue(9, code) + FLAGS * spread * CHUNK.cycles(code) + layer.gradients * MOVE.cycles(code)
        merge = max(merge, machine.vertices(1, merged))
        pieces = ceil_div(layer.capacity, slice_share(net.batch * layer.capacity, machine.tiles)) + FLAGS
        scatters.append(Exchange(sent=FLOAT * (layer.capacity + FLAGS), sent_pieces=pieces))
    ends = (machine.busiest(pulls), machine.busiest(scatters))
    return (
        machine.step("compact flags", "flags and compaction", "forward", compute=scan, moves=(machine.busiest(gathers),)),
        machine.step("join workers", "flags and compaction", "forward", compute=join),
        machine.step("join tiles", "flags and compaction", "forward", compute=merge, moves=ends),
    )


def _write_histories(machine: Machine) -> tuple[Superstep, ...]:
    """Write states, ids and counts into their histories, for one layer after another."""
    net = machine.net
    written = {
        "state": [net.batch * machine.per_tile(i) for i in range(len(net.layers))],
        "ids": [slice_share(net.batch * layer.capacity, machine.tiles) for layer in net.layers],
        "counts": [slice_share(FLAGS * net.batch, machine.tiles)] * len(net.layers),
    }
    costs = {what: machine.one_by_one([machine.dynamic(size) for size in sizes]) for what, sizes in written.items()}
    return tuple(
        machine.step(f"keep {what}", "dynamic slices", "forward", compute=cost, program_steps=machine.serial)
        for what, cost in costs.items()
    )
