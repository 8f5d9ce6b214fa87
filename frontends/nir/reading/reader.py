"""Read a NIR file as a nested graph, and check each node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import h5py  # type: ignore[import-untyped]
import numpy as np

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Array
from snnc.frontends.common.notes import KEY
from snnc.frontends.nir.errors import (
    NirFieldError,
    NirNestingError,
    NirNodeTypeError,
    NirNotFiniteError,
    NirTimeConstantError,
    NotNirError,
    UnreadableNirError,
)
from snnc.frontends.nir.reading.fields import IGNORED, INTEGERS, POSITIVE, TYPES, NirGraph, NirNode
from snnc.frontends.nir.reading.storage import HdfFile

MAX_DEPTH: Final = 32
"""Maximum nesting depth of graphs."""
MAX_RANK: Final = 64
"""Maximum number of values in a field of integers; such fields have one value per axis."""


def read_nir(path: Path) -> NirGraph:
    """Return the checked graph of a file, or raise a NirError whose class says which part of the file is invalid."""
    storage = HdfFile(path)
    try:
        return _FileReader(storage).root(path)
    except SnncError:
        raise
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, OverflowError, UnicodeError) as error:
        raise UnreadableNirError(f"{path} is damaged ({type(error).__name__}: {str(error)[:120]}); write the file again.") from None
    finally:
        storage.close()


class _FileReader:
    """Reads the graphs and nodes of an open file. The argument `above` of methods: ids of the HDF5 groups of the graphs around a node."""

    def __init__(self, storage: HdfFile) -> None:
        self.storage = storage

    def root(self, path: Path) -> NirGraph:
        group = self.storage.member(self.storage.file, "node", str(path))
        if not isinstance(group, h5py.Group) or "type" not in group:
            members = ", ".join(map(repr, self.storage.names(self.storage.file, str(path))[:6])) or "nothing"
            raise NotNirError(
                f"{path} is HDF5, but not a NIR graph: it has no group 'node' with a type, only {members}. Write it with nir.write."
            )
        if self._type(group, "the root") != "NIRGraph":
            raise NotNirError(f"{path} contains a single {self._type(group, 'the root')}; snnc reads a NIRGraph with Input and Output.")
        return self._graph(group, "", ())

    def _graph(self, group: Any, path: str, above: tuple[Any, ...]) -> NirGraph:
        where = f"the graph {path!r}" if path else "the graph"
        if len(above) >= MAX_DEPTH:
            raise NirNestingError(f"{where} is nested {len(above)} graphs deep; snnc reads at most {MAX_DEPTH}.")
        if group.id in above:
            raise NirNestingError(f"{where} contains itself; a graph may only contain graphs that it is not part of.")
        members = self.storage.names(group, where)
        nodes, edges = (self.storage.member(group, name, where) for name in ("nodes", "edges"))
        if not isinstance(nodes, h5py.Group) or edges is None:
            raise NotNirError(f"{where} has no {'edges' if isinstance(nodes, h5py.Group) else 'nodes'}, only {', '.join(members)}.")
        nodes_by_name: dict[str, NirNode | NirGraph] = {}
        self._nodes(nodes, path, "", (*above, group.id), nodes_by_name)
        notes = None if path else self._notes(group, where)
        return NirGraph(path, nodes_by_name, self.storage.pairs(edges, f"edges of {where}"), self._metadata(group, where), notes)

    def _nodes(self, group: Any, path: str, prefix: str, above: tuple[Any, ...], into: dict[str, NirNode | NirGraph]) -> None:
        """Read the nodes and nested graphs of `group` into `into`; `prefix` is the part of their names before the last slash."""
        for key in self.storage.names(group, f"the graph {path!r}" if path else "the graph"):
            name = prefix + key
            full = f"{path}.{name}" if path else name
            member = self.storage.member(group, key, f"node {full!r}")
            if not isinstance(member, h5py.Group):
                raise NirFieldError(f"node {full!r} is an HDF5 dataset; it must be a group with a type.")
            if "type" in member:
                into[name] = self._node(member, full, above)
            elif prefix.count("/") < MAX_DEPTH and len(member):  # a name with a slash is a path in HDF5
                self._nodes(member, path, f"{name}/", above, into)
            else:
                raise NirFieldError(f"node {full!r} has no type; write one of {', '.join(TYPES)}.")

    def _node(self, group: Any, path: str, above: tuple[Any, ...]) -> NirNode | NirGraph:
        kind = self._type(group, f"node {path!r}")
        if kind == "NIRGraph":
            return self._graph(group, path, above)
        if kind not in TYPES:
            raise NirNodeTypeError(f"node {path!r} is a {kind[:60]!r}, which NIR does not define; types: {', '.join(TYPES)}, NIRGraph.")
        required, optional = TYPES[kind]
        where = f"node {path!r} ({kind})"
        members = self.storage.names(group, where)
        missing = [name for name in required if name not in members]
        unknown = [name for name in members if name not in (*required, *optional) and name not in IGNORED]
        if missing:
            raise NirFieldError(f"{where} has no {', '.join(missing)}; it has {', '.join(members)}.")
        if unknown:
            raise NirFieldError(
                f"{where} has the field {unknown[0][:60]!r}, which NIR does not define for it; ignoring it could change its meaning."
            )
        fields: dict[str, Array] = {}
        words: dict[str, str] = {}
        for name in (*required, *optional):
            if name not in members:
                continue
            dataset = self.storage.member(group, name, where)
            if name in INTEGERS and isinstance(dataset, h5py.Dataset) and (dataset.size or 0) > MAX_RANK:
                raise NirFieldError(
                    f"{name} of {where} has the shape {list(dataset.shape)}; it must have at most {MAX_RANK} values, one per axis."
                )
            if name == "padding" and self.storage.is_text(dataset):
                words[name] = self.storage.text(dataset, f"{name} of {where}")
            else:
                fields[name] = self.storage.numbers(dataset, f"{name} of {where}")
        _check_values(fields, where)
        return NirNode(path, kind, fields, words)

    def _type(self, group: Any, where: str) -> str:
        return self.storage.text(self.storage.member(group, "type", where), f"the type of {where}")

    def _notes(self, group: Any, where: str) -> str | None:
        """Return snnc's description of the network from the metadata; None in files that snnc did not write."""
        members = self.storage.member(group, "metadata", where)
        dataset = self.storage.member(members, KEY, f"the metadata of {where}") if isinstance(members, h5py.Group) else None
        return self.storage.long_text(dataset, f"{KEY} of the metadata of {where}") if self.storage.is_text(dataset) else None

    def _metadata(self, group: Any, where: str) -> dict[str, float]:
        """Return the numbers in the metadata, such as ``dt``; other entries are ignored."""
        members = self.storage.member(group, "metadata", where)
        if not isinstance(members, h5py.Group):
            return {}
        numbers = {}
        for name in self.storage.names(members, f"the metadata of {where}"):
            dataset = self.storage.member(members, name, f"the metadata of {where}")
            if isinstance(dataset, h5py.Dataset) and dataset.shape in ((), (1,)) and dataset.dtype.kind in "fiu":
                numbers[name] = float(self.storage.numbers(dataset, f"{name} of the metadata of {where}").reshape(())[()])
        return numbers


def _check_values(fields: Mapping[str, Array], where: str) -> None:
    for name, array in fields.items():
        if array.dtype.kind == "f":
            with np.errstate(over="ignore"):
                wrong = ~np.isfinite(array.astype(np.float32, copy=False))
            if wrong.any():
                at = tuple(int(i) for i in np.argwhere(wrong)[0])
                raise NirNotFiniteError(
                    f"{name} of {where} is {array[at]} at index {list(at)} ({int(wrong.sum())} of {array.size} are not finite in float32)."
                )
        if name in INTEGERS and array.dtype.kind != "i":
            rounded = np.rint(array)
            if not np.array_equal(rounded, array) or (array.size and np.abs(rounded).max() > 2**31):
                raise NirFieldError(f"{name} of {where} is {array.tolist()!s:.60}; it must contain whole numbers.")
        if name in POSITIVE and array.size and array.min() <= 0:
            raise NirTimeConstantError(
                f"{name} of {where} is {array.min():g} ({int((array <= 0).sum())} of {array.size}); a time constant must be above 0 s."
            )
        if array.size == 0 and name not in ("shape", "input_shape"):
            raise NirFieldError(f"{name} of {where} has the shape {list(array.shape)}, without values.")
