"""Read a project's plan; store and read the parts into which populations are split, or the orders of their channels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.plan_json import plan_from_json
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.errors import PartsError, UnreachedPartError
from snnc.compiler.tiles.partition import Partition
from snnc.compiler.tiles.partition.reorder import orders, reorder
from snnc.compiler.tiles.planning.options import PlanOptions
from snnc.compiler.tiles.planning.ordering import ChannelOrders
from snnc.compiler.tiles.planning.parting import NetworkPartitioner, Parts
from snnc.compiler.tiles.planning.placing import parter_of
from snnc.data.arrays import read_arrays, write_arrays
from snnc.errors import ProjectFolderError

PARTS: Final = "model/parts.npz"
"""File with the part of every neuron, and the neuron's position in the part."""
ORDERS: Final = "model/orders.json"
"""File with the grain of each reordered population: the number of channels of one image position that are adjacent in memory."""


def save_placed(parts: Parts | ChannelOrders, folder: Path) -> None:
    """Write the parts or channel orders placed by the plan into the project folder."""
    if isinstance(parts, ChannelOrders):
        grains = {id_: order.grain for id_, order in parts.orders.items()}
        (folder / ORDERS).write_text(json.dumps(grains, indent=1) + "\n", encoding="utf-8")
    else:
        save_parts(parts.partition, folder)


def read_placed(graph: Graph, program: StepProgram, chosen: PlanOptions, folder: Path) -> tuple[Plan, Parts | ChannelOrders | None]:
    """Return the plan of the project in `folder`, and the parts or channel orders that it places, if any.

    `graph` is the graph as the target's backend prepared it, `program` its step program, and `chosen` the options of the plan.
    """
    try:
        plan = plan_from_json((folder / "plan.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectFolderError(f"the plan of the project {str(folder)!r} cannot be read ({error}); compile the model again.") from None
    if (folder / ORDERS).exists():
        return plan, _load_orders(program, folder)
    if (folder / PARTS).exists():
        return plan, load_parts(parter_of(graph, program, chosen), folder)
    return plan, None


def save_parts(partition: Partition, folder: Path) -> None:
    """Write the part of every neuron, and its position in the part, into a project folder."""
    names = list(partition.parts)
    arrays = {f"part_{n}": partition.parts[name].astype(np.uint16) for n, name in enumerate(names)}
    arrays |= {f"place_{n}": partition.places[name].astype(np.uint32) for n, name in enumerate(names) if name in partition.places}
    write_arrays(folder / PARTS, {"names": np.frombuffer(json.dumps(names).encode(), dtype=np.uint8), **arrays})


def load_parts(parter: NetworkPartitioner, folder: Path) -> Parts:
    """Read parts written by :func:`save_parts`; raise PartsError if the file is damaged."""
    try:
        arrays = read_arrays(folder / PARTS)
        names = json.loads(arrays["names"].tobytes())
        kinds = ("part", "place")
        partition = Partition(*({name: arrays[f"{k}_{n}"].astype(np.int64) for n, name in enumerate(names)} for k in kinds))
        sizes = {} if parter.prepared.candidates is None else parter.prepared.candidates.sizes
        shapes = {name: (n,) for name, n in sizes.items()}
        if any({name: number.shape for name, number in some.items()} != shapes for some in (partition.parts, partition.places)):
            raise ValueError("it belongs to a different network")
        return parter.apply(partition)
    except (KeyError, ValueError, TypeError, UnreachedPartError) as error:
        raise PartsError(f"the parts in {str(folder / PARTS)!r} cannot be read ({error}); compile the model again.") from None


def _load_orders(program: StepProgram, folder: Path) -> ChannelOrders:
    try:
        grains = json.loads((folder / ORDERS).read_text(encoding="utf-8"))
        possible = orders(program, 1)
        chosen = {id_: replace(possible[id_], grain=int(grain)) for id_, grain in grains.items()}
        if any(order.grain < 1 or order.channels % order.grain for order in chosen.values()):
            raise ValueError("the number of adjacent channels does not divide the number of channels")
    except (OSError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise ProjectFolderError(f"{str(folder / ORDERS)!r} cannot be read ({error}); compile the model again.") from None
    return ChannelOrders(chosen, reorder(program, chosen))
