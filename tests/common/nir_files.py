"""Small NIR files for the tests."""

from __future__ import annotations

from itertools import pairwise

import h5py
import nir
import numpy as np

RNG = np.random.default_rng(0)


def full(n, value):
    return np.full(n, value, np.float32) if isinstance(n, tuple | int) else np.asarray(value, np.float32)


def lif(n=3, tau=0.01, r=5.0, leak=0.0, threshold=1.0, reset=0.0):
    return nir.LIF(tau=full(n, tau), r=full(n, r), v_leak=full(n, leak), v_threshold=full(n, threshold), v_reset=full(n, reset))


def linear(outputs=3, inputs=2, bias=False):
    weight = RNG.normal(0, 1, (outputs, inputs)).astype(np.float32)
    return nir.Affine(weight, RNG.normal(0, 1, outputs).astype(np.float32)) if bias else nir.Linear(weight)


def chain(*nodes, inputs=2, outputs=None):
    """Name the nodes n0, n1, … between input and output."""
    outputs = outputs if outputs is not None else inputs
    named = {"input": nir.Input(np.atleast_1d(inputs)), **{f"n{k}": node for k, node in enumerate(nodes)}}
    named["output"] = nir.Output(np.atleast_1d(outputs))
    return named, list(pairwise(named))


def write(path, nodes, edges, metadata=None):
    nir.write(path, nir.NIRGraph(nodes, edges, metadata=metadata or {}, type_check=False))
    return path


def good(path):
    return write(path, *chain(linear(), lif(), inputs=2, outputs=3))


def edit(path, change):
    """Edit the file: `change` gets the group of the root graph."""
    with h5py.File(path, "r+") as file:
        change(file["node"])
    return path


def replace(group, name, value, **options):
    if name in group:
        del group[name]
    group.create_dataset(name, data=value, **options)
