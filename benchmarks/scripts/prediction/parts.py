"""Compare a sparse network whole and split into parts: predicted step time, and events between parts for each partitioner.

    python benchmarks/scripts/prediction/parts.py [--net clusters-10k] [--targets gc200,m2000] [--steps 25]
        [--parts 4,8] [--partitioners snnc,metis]

All times are predictions; events are expected numbers per step and sample, each counted once for every further part that reads it.
With the default number of steps, the network also fits without parts.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from snnc.benchmarks.benchmark import by_buffer
from snnc.benchmarks.nets import benchmark
from snnc.compiler.machines import load_target
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.errors import TooBigError
from snnc.compiler.tiles.partition.partitioners import partitioner, partitioners
from snnc.compiler.tiles.planning.parting import IMBALANCE, NetworkPartitioner, activity_of
from snnc.compiler.tiles.planning.placing import map_program, parter_of
from snnc.driver.lowering import lower_graph
from snnc.options.compile_options import CompileOptions, options


def main() -> None:
    parser = argparse.ArgumentParser(description="Sparse networks whole and in parts.")
    parser.add_argument("--net", default="clusters-10k")
    parser.add_argument("--targets", default="gc200,m2000")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--parts", default="4,8")
    parser.add_argument("--partitioners", default=",".join(partitioners()))
    arguments = parser.parse_args()
    numbers = [int(n) for n in arguments.parts.split(",")]
    case = replace(benchmark(arguments.net), steps=arguments.steps)
    chosen = options("gc200", steps=case.steps, batch=case.batch, loss=case.loss, optimizer=case.optimizer, surrogate=case.surrogate)
    lowered = lower_graph(case.build().graph(), chosen)
    activity = Activity(by_buffer(lowered.program, case.activity), {}, case.activity_source)
    parter = parter_of(lowered.ready, lowered.program, chosen.for_backend().for_plan(), activity)
    cuts(parter, numbers, arguments.partitioners.split(","))
    for target in arguments.targets.split(","):
        times(parter, replace(chosen, target=target), numbers)


def cuts(parter: NetworkPartitioner, numbers: list[int], names: list[str]) -> None:
    graph = parter.hypergraph()
    print(f"{'partitioner':12} {'parts':>5} {'events cut':>11} {'imbalance':>9} {'seconds':>8}   (events sent: {graph.rate.sum():.1f})")
    for name in names:
        for number in numbers:
            start = time.perf_counter()
            part = partitioner(name)(graph, number, IMBALANCE, 0)
            seconds = time.perf_counter() - start
            print(f"{name:12} {number:5d} {graph.cut(part, number):11.1f} {graph.imbalance(part, number):8.1%} {seconds:8.1f}", flush=True)


def times(parter: NetworkPartitioner, chosen: CompileOptions, numbers: list[int]) -> None:
    machine = load_target(chosen.target)
    for number in (1, *numbers):
        start = time.perf_counter()
        parts = None if number == 1 else parter.apply(parter.partition(number))
        program = parter.program if parts is None else parts.correspondence.program_of_parts
        activity = parter.activity if parts is None else activity_of(parts, parter.activity)
        try:
            plan = map_program(program, chosen.for_backend().for_plan(), activity, machine=machine)
            text = f"{1e3 * plan.seconds:8.3f} ms predicted, {plan.bound_cycles / plan.cycles:4.0%} of bound, "
            text += f"fullest tile {max(plan.tile_memory) / 1024:.0f} KiB, {plan.chips_used} chips"
        except TooBigError as error:
            text = f"does not fit: {error.text.split(': ', 1)[1].split('. ')[0]}"
        print(f"{chosen.target:8} {number:3d} parts  {text}  ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
