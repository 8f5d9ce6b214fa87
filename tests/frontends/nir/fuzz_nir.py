"""Mutate NIR files of the corpus and random ones, and compare snnc's results with the interpreter.

usage: python tests/frontends/nir/fuzz_nir.py --cases 100000 --jobs 2 [--seed 0] [--state FILE] [--keep FOLDER]

A case fails on a crash, a hang, more than 2 GiB, an exception without a code, a file opened outside the model's folder (see
``fuzzing``), or outputs that differ from the interpreter's where the file is read.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import tempfile
from pathlib import Path

import h5py
import nir_hdf5
import numpy as np
from nir_random import DT, Maker, compare_arrays, inputs_of, random_file

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Input, Population
from snnc.frontends.nir.dialects import DIALECTS
from snnc.frontends.nir.interpreter.interpreter import simulate
from snnc.frontends.nir.load import load_nir
from snnc.frontends.nir.writing.write import write_nir

sys.path.append(str(Path(__file__).parents[2] / "common"))

from fuzzing import CORPUS, main
from simulate import simulate as run_graph

SUFFIX = ".nir"
RANDOM = 200
"""Random files that are mutated."""
LARGEST = 200_000
"""Values of all layers together beyond which a network is not run."""


def sources():
    """Names of the good NIR cases of the corpus, and what stands for a random file and for one that snnc wrote."""
    cases = json.loads((CORPUS / "manifest.json").read_text())["cases"]
    names = [f[:-4] for c in cases if c["expect"] == "import" for f in c["files"] if f.endswith(".nir")]
    return names + ["random"] * len(names) + ["written"] * (len(names) // 3)


def prepare(model, outside):
    """Put a neighbour beside the case, and a link that leads outside."""
    with h5py.File(model / "neighbour.h5", "w") as file:
        file["weight"] = np.ones((4, 4), np.float32)
    (model / "link.h5").symlink_to(outside / "secret.h5")


@functools.cache
def random_bytes(seed):
    """Return a random file."""
    with tempfile.NamedTemporaryFile(suffix=SUFFIX) as file:
        random_file(file.name, seed)
        return Path(file.name).read_bytes()


@functools.cache
def written_bytes(seed):
    """Return a random file as snnc writes it again, with a description of its graph; the file itself where NIR cannot say it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.nir"
        path.write_bytes(random_bytes(seed))
        with contextlib.suppress(SnncError):
            write_nir(load_nir(path, dt=DT), path, dt=DT)
        return path.read_bytes()


def make(path, names, rng, outside):
    """Write a mutated file; return what was done."""
    name = str(rng.choice(names))
    if name == "random":
        path.write_bytes(random_bytes(int(rng.integers(RANDOM))))
    elif name == "written":
        path.write_bytes(written_bytes(int(rng.integers(RANDOM // 5))))
    else:
        path.write_bytes((CORPUS / f"{name}.nir").read_bytes())
    done = [name]
    for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3]))):
        kind = str(rng.choice(list(nir_hdf5.CHANGES)))
        done.append(kind)
        try:
            with h5py.File(path, "r+") as file:
                nir_hdf5.CHANGES[kind](nir_hdf5.Spot(file, Maker(rng), outside))
        except Exception as error:
            done.append(f"({type(error).__name__})")
    if rng.random() < 0.3:
        done.append("bytes")
        path.write_bytes(broken(path.read_bytes(), rng))
    return " ".join(done)


def broken(data, rng):
    """Change, cut or repeat bytes."""
    data = bytearray(data)
    kind = int(rng.integers(5))
    at = rng.integers(0, len(data), int(rng.integers(1, 5)))
    if kind <= 1:
        for k in at:
            data[k] = int(rng.integers(256))
    elif kind == 2:
        for k in at:
            data[k : k + 8] = (0, 2**63 - 1, 2**32 - 1, 2**31, 2**64 - 1, int(at[0]))[int(rng.integers(6))].to_bytes(8, "little")
    elif kind == 3:
        del data[int(at[0]) :]
    else:
        data[int(at[0]) : int(at[0]) + 16] = data[int(at[-1]) : int(at[-1]) + 16]
    return bytes(data)


def compare(path, seed, guard):
    """Load a file, run it beside the interpreter; return what holds, or raise."""
    rng = np.random.default_rng(seed)
    options = {"dialect": str(rng.choice(list(DIALECTS))), "dt": [None, 1e-3, 1e-4][int(rng.integers(3))]}
    try:
        with guard():
            graph = load_nir(path, **options)
    except SnncError as error:
        return f"refused {error.code}"
    sizes = [int(np.prod(o.shape)) for _, o in graph.of_type(Input, Population)]
    if sum(sizes) > LARGEST or path.stat().st_size > 1 << 21:
        return "read, too large to run"
    arrays = inputs_of(graph, seed, 6, 1)
    with np.errstate(all="ignore"):
        with guard():
            wanted = simulate(path, arrays, **options)
        found = run_graph(graph, arrays)
        steps = compare_arrays(found, wanted, 6)
    return "read, equal" if steps else "read, undecided"


if __name__ == "__main__":
    sys.exit(main("fuzz_nir", __doc__.splitlines()[0]))
