"""The tile map of a benchmark network: the layer and the memory of each tile."""

from __future__ import annotations

from typing import Any

from snnc.benchmarks.measure import mapped_plan
from snnc.benchmarks.nets import benchmark
from snnc.compiler.errors import SnncError
from snnc.report.render import write
from snnc.report.subject import Subject


def map_tiles(name: str) -> dict[str, Any]:
    """Map a benchmark network; return its map as SVG and, for each layer, the number of its tiles and their mean and largest memory."""
    try:
        plan = mapped_plan(benchmark(name))
    except SnncError as error:
        return {"net": name, "error": error.text}
    subject = Subject(plan, {})
    memory = plan.tile_memory
    layers = []
    for number, population in enumerate(plan.populations):
        tiles = [int(tile) for tile in subject.places.layers[number].tiles]
        tile_bytes = [memory[tile] for tile in tiles]
        about = {"layer": population.label, "neurons": population.neurons, "tiles": len(tiles)}
        layers.append(about | {"mean_bytes": sum(tile_bytes) / len(tile_bytes), "largest_bytes": max(tile_bytes)})
    return {"net": name, "target": plan.target.name, "layers": layers, "svg": write(subject, "svg").decode()}
