"""Big tables and weights as files beside the emitted sources."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from snnc.backends.poplar.network import Network
from snnc.compiler.graph import Array


def plan_tables(net: Network) -> bytes:
    """``plan.bin``: blocks of populations (tile, first, count, sample, samples), relays of stores (tile, sample, samples), losses (tile)."""
    tables: list[Iterable[Sequence[int]]] = [
        [(b.tile, b.first, b.count, b.sample, b.samples) for b in p.blocks] for p in net.plan.populations
    ]
    tables += [[(r.tile, r.sample, r.samples) for r in s.buses[0].relays] for s in net.stores.values()]
    tables.append([(tile,) for tile in net.plan.loss_tiles])
    parts = [struct.pack("<I", len(tables))]
    for table in tables:
        array = np.asarray(list(table), dtype="<u4")
        array = array.reshape(len(array), -1 if array.size else 0)
        parts += [struct.pack("<II", *array.shape), array.tobytes()]
    return b"".join(parts)


def safetensors(arrays: Mapping[str, Array]) -> tuple[bytes, list[dict[str, object]]]:
    """Return a safetensors file of float32 arrays, and where each stands in it."""
    header: dict[str, object] = {}
    data: list[bytes] = []
    position = 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [position, position + len(raw)]}
        data.append(raw)
        position += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    places, offset = [], 8 + len(text)
    for (name, array), raw in zip(arrays.items(), data, strict=True):
        places.append({"name": name, "offset": offset, "elements": int(array.size)})
        offset += len(raw)
    return struct.pack("<Q", len(text)) + text + b"".join(data), places


def initial_values(net: Network) -> dict[str, Array]:
    """Parameters, initial states of the whole batch, and the learning rate, by their ABI names."""
    found: dict[str, Array] = {name: np.atleast_1d(p.value) for name, p in net.program.parameters.items()}
    for population in net.program.populations:
        shape = (net.plan.batch, net.neurons[population.id])
        for buffer, value in zip(net.step(population.id).states, population.initial, strict=True):
            found[f"{buffer}_initial"] = np.broadcast_to(np.asarray(value, dtype=np.float32).reshape(-1), shape)
    if net.training and net.program.optimizer is not None:
        found["lr"] = np.array([net.program.optimizer.lr], dtype=np.float32)
    return found
