"""Program that runs a native partitioner in a separate process: ``python native.py mtkahypar|metis <input >output``.

It reads an npz archive and writes an npy array of parts. Besides the standard library and NumPy it imports only the partitioner.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np


def mtkahypar(given: Mapping[str, Any]) -> list[int]:
    """Partition the hypergraph of `start`, `pins`, `rate` and `work` for the connectivity metric; deterministic, on one thread."""
    import mtkahypar

    library = mtkahypar.initialize(1, print_warnings=False)
    mtkahypar.set_seed(int(given["seed"]))
    context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(int(given["parts"]), float(given["imbalance"]), mtkahypar.Objective.KM1)
    context.logging = False
    nets = [pins.tolist() for pins in np.split(given["pins"], given["start"][1:-1])]
    work, rate = given["work"].tolist(), given["rate"].tolist()
    made = library.create_hypergraph(context, len(work), len(nets), nets, work, rate)
    found: list[int] = made.partition(context).get_partition()
    return found


def metis(given: Mapping[str, Any]) -> list[int]:
    """Partition the graph of `start` and `neighbours`, with the weights `work` and `edges`, to minimise the cut edges."""
    import pymetis

    _, part = pymetis.part_graph(
        int(given["parts"]),
        pymetis.CSRAdjacency(given["start"].tolist(), given["neighbours"].tolist()),
        vweights=given["work"].tolist(),
        eweights=given["edges"].tolist(),
        recursive=bool(given["recursive"]),
        options=pymetis.Options(seed=int(given["seed"])),
    )
    return list(part)


def main() -> None:
    """Write the result to the original standard output; the library's own output goes to standard error."""
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as given:
            found = {"mtkahypar": mtkahypar, "metis": metis}[sys.argv[1]](given)
        array = io.BytesIO()
        np.save(array, np.asarray(found, dtype=np.int64), allow_pickle=False)
        answer.write(array.getvalue())


if __name__ == "__main__":
    main()
