"""Hand-made plans for tests of reports: of any size, without planning, and with known numbers."""

from __future__ import annotations

import numpy as np

from snnc.compiler.ir.plan import Block, BusPlan, ConnectionPlan, Phase, Plan, PopulationPlan, Relay
from snnc.compiler.machines import load_target

CATEGORIES = ("weights", "optimiser", "gradients", "history", "relays", "records", "exchange", "code")


def population(number: int, label: str, neurons: int, starts: list[int], width: int, samples: int) -> PopulationPlan:
    """Lay `neurons` on `width` tiles from each of `starts`; each start is a replica with `samples` samples."""
    size, larger = divmod(neurons, width)
    blocks = []
    for replica, start in enumerate(starts):
        first = 0
        for tile in range(width):
            count = size + (tile < larger)
            blocks.append(Block(start + tile, first, count, replica * samples, samples))
            first += count
    return PopulationPlan(f"p{number}", label, neurons, number, tuple(starts), width, tuple(blocks))


def made_plan(
    target: str = "gc200", layers: int = 2, replicas: int = 1, batch: int = 16, steps: int = 20, seed: int = 0, label: str = "layer"
) -> Plan:
    """Chain `layers` layers with a loop on each second one over nine tenths of the machine; relays lie on the rest."""
    machine = load_target(target)
    rng = np.random.default_rng(seed)
    width = machine.tiles * 9 // 10 // (layers * replicas)
    populations, buses, connections = [], [], []
    relays = tuple(Relay(machine.tiles - 1 - n, n, 1) for n in range(batch))
    buses.append(BusPlan("b0", "x0", "x0_in", 700, "events", 1, 700, "exact", relays))
    for n in range(layers):
        starts = [(n * replicas + r) * width for r in range(replicas)]
        populations.append(population(n, f"{label} {n}", 4 * width, starts, width, batch // replicas))
        buses.append(BusPlan(f"b{n + 1}", f"p{n}", f"p{n}_o0", 4 * width, "events", 1, 4 * width, "exact", relays))
        connections.append(ConnectionPlan(f"c{n}", f"b{n}", 0, f"p{n}"))
        if n % 2:
            connections.append(ConnectionPlan(f"r{n}", f"b{n + 1}", 1, f"p{n}"))
    holders = np.zeros(machine.tiles, dtype=np.int64)
    holders[: width * layers * replicas] = 1
    holders[-batch:] = 1
    memory = {name: tuple((holders * rng.integers(1000, 60000, machine.tiles)).tolist()) for name in CATEGORIES}
    iterations = steps + layers - 1
    names = (
        ("forward: relays", "forward"),
        ("forward: neurons", "forward"),
        ("loss: adjoints", "loss"),
        ("backward: neurons", "backward"),
        ("update: optimiser", "update"),
    )
    phases = tuple(
        Phase(name, part, iterations if part in ("forward", "backward") else 1, 1000.0 * (n + 1), 256.0, 700.0 * n, 4096 * n, n)
        for n, (name, part) in enumerate(names)
    )
    return Plan(
        name=f"{layers} layers",
        target=machine,
        steps=steps,
        batch=batch,
        training=True,
        interval=1,
        iterations=iterations,
        populations=tuple(populations),
        buses=tuple(buses),
        connections=tuple(connections),
        activity={b.buffer: 0.05 for b in buses},
        activity_source="assumed",
        memory=memory,
        phases=phases,
        loss_tiles=tuple(r.tile for r in relays),
        tile_cycles={kind: tuple((holders * rng.integers(1, 200000, machine.tiles)).tolist()) for kind in ("compute", "exchange")},
    )
