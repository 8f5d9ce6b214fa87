"""Program that runs a native partitioner in a separate process: ``python native.py mtkahypar|metis <input >output``.

It reads an npz archive, whose arrays are the arguments of :func:`mtkahypar` or :func:`metis`, and writes an npy array with the part of each
vertex. Besides the standard library and NumPy it imports only the partitioner.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np


def mtkahypar(arguments: Mapping[str, Any]) -> list[int]:
    """Partition a hypergraph with a small sum over nets of weight * (number of parts joined - 1); deterministic, on one thread.

    Net n joins the vertices ``pins[start[n]:start[n + 1]]`` and has the weight ``rate[n]``; vertex v has the weight ``work[v]``. The other
    arguments are numbers: `parts`, `seed`, and the permitted `imbalance` of the parts' work (0.03: 3 % above the mean).
    """
    import mtkahypar

    library = mtkahypar.initialize(1, print_warnings=False)
    mtkahypar.set_seed(int(arguments["seed"]))
    context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(int(arguments["parts"]), float(arguments["imbalance"]), mtkahypar.Objective.KM1)
    context.logging = False
    nets = [pins.tolist() for pins in np.split(arguments["pins"], arguments["start"][1:-1])]
    work, rate = arguments["work"].tolist(), arguments["rate"].tolist()
    hypergraph = library.create_hypergraph(context, len(work), len(nets), nets, work, rate)
    part: list[int] = hypergraph.partition(context).get_partition()
    return part


def metis(arguments: Mapping[str, Any]) -> list[int]:
    """Partition a graph so that the edges between parts have the smallest total weight.

    ``neighbours[start[v]:start[v + 1]]`` are the neighbours of vertex v, `edges` has the weights of these edges in the same order, and
    ``work[v]`` is the weight of the vertex. The other arguments are numbers: `parts`, `seed`, and `recursive` (whether to bisect
    recursively).
    """
    import pymetis

    _, part = pymetis.part_graph(
        int(arguments["parts"]),
        pymetis.CSRAdjacency(arguments["start"].tolist(), arguments["neighbours"].tolist()),
        vweights=arguments["work"].tolist(),
        eweights=arguments["edges"].tolist(),
        recursive=bool(arguments["recursive"]),
        options=pymetis.Options(seed=int(arguments["seed"])),
    )
    return list(part)


def main() -> None:
    """Partition the input, and write the result to the original standard output; the library's own output goes to standard error."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as arguments:
            part = {"mtkahypar": mtkahypar, "metis": metis}[sys.argv[1]](arguments)
        array = io.BytesIO()
        np.save(array, np.asarray(part, dtype=np.int64), allow_pickle=False)
        answer.write(array.getvalue())


if __name__ == "__main__":
    main()
