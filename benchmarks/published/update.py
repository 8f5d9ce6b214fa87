"""Supersteps that run once in a training step, outside its time steps: casts, sums of private gradients, the optimiser, the host.

Not included: transposes, the loss (computed outside the program), and costs that occur once per epoch.
"""

from __future__ import annotations

from snnc.benchmarks.published.layout import slice_share
from snnc.benchmarks.published.machine import Machine, Superstep
from snnc.benchmarks.published.net import PRIVATE_COPIES
from snnc.benchmarks.published.options import ADAM_VECTOR, HOST_BYTES_PER_SECOND, LOCAL_COPY_BYTES, SGD_VECTOR
from snnc.compiler.ir.arrays.sizes import FLOAT


def update(machine: Machine) -> tuple[Superstep, ...]:
    """Return the supersteps that run once in a training step, in order."""
    net, tiles = machine.net, machine.tiles
    # The host sends the input ids and counts of all steps as 4-byte values.
    size = FLOAT * net.steps * net.batch * (net.input_capacity + 1)
    streamed = size / HOST_BYTES_PER_SECOND * machine.target.clock_hz
    # The ids and counts of all steps, of the inputs and of every layer, are cast to integers and back.
    stored = [slice_share(net.batch * net.input_capacity, tiles), slice_share(net.batch, tiles)]
    stored += [n for layer in net.layers for n in (slice_share(net.batch * layer.capacity, tiles), slice_share(2 * net.batch, tiles))]
    casts = [n * net.steps for n in 2 * stored]
    weights = [before * machine.per_tile(i) for i, before in enumerate(net.widths[:-1])]
    zeroed = [PRIVATE_COPIES * FLOAT * n / LOCAL_COPY_BYTES for n in weights]
    optimiser = ADAM_VECTOR if net.moments else SGD_VECTOR
    return (
        machine.step("inputs from the host", "host", "update", compute=streamed, runs=1),
        machine.step("casts", "update", "update", compute=sum(map(machine.elementwise, casts)), runs=1, programs=len(casts)),
        machine.step("zero private gradients", "update", "update", compute=machine.one_by_one(zeroed), runs=1, programs=machine.serial),
        machine.step("sum private gradients", "update", "update", compute=machine.elementwise(PRIVATE_COPIES * max(weights)), runs=1),
        machine.step(
            "optimiser",
            "update",
            "update",
            compute=machine.one_by_one([machine.elementwise(n, optimiser) for n in weights]),
            runs=1,
            programs=machine.serial,
        ),
    )
