"""Read variable-length rows of an HDF5 file directly at their positions in the file.

The HDF5 library takes at least 15 times as long to read a row of a few thousand spikes (measured with h5py 3.16).
The dataset stores a reference per row: the number of elements, the address of a global heap collection, and the number of an object in the
collection. Source: HDF5 File Format Specification 3.0, "Global Heap" (III.E) and "Disk Format of variable-length data" (IV.A.2, layout of
the data); addresses have 8 bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from snnc.data.sample import Array

_REFERENCE: Final = np.dtype([("count", "<u4"), ("heap", "<u8"), ("object", "<u4")])
"""Reference to a row: number of elements, address of its heap collection, and number of its object."""
_COLLECTION: Final = struct.Struct("<4sB3xQ")
"""Header of a heap collection: signature, version and size."""
_OBJECT: Final = struct.Struct("<HHxxxxQ")
"""Header of an object in a collection: its number, its reference count and its size."""
_MAX_COLLECTION: Final = 1 << 28
"""Largest accepted size of a heap collection, in bytes; HDF5 makes a collection as large as its largest object needs."""


class UnplacedError(Exception):
    """The positions of the rows cannot be determined, so the HDF5 library must read them."""


@dataclass(frozen=True, eq=False)
class VlenRows:
    """Rows of elements of type `kind` at known positions in a file; `begin` and `size`, each [rows], are in bytes."""

    kind: np.dtype[Any]
    begin: Array
    size: Array

    def read(self, file: int, number: int) -> Array:
        """Read a row from an open file descriptor; raise EOFError if the file ends inside the row."""
        begin, size = int(self.begin[number]), int(self.size[number])
        data = os.pread(file, size, begin)
        if len(data) != size:
            raise EOFError(f"the file ends at byte {begin + len(data)}, but the row ends at {begin + size}")
        return np.frombuffer(data, self.kind)


def rows_of(file: int, dataset: Any) -> VlenRows:
    """Find the variable-length rows of an ``h5py.Dataset``; `file` is a descriptor of its file.

    Raise UnplacedError if the dataset is compressed, damaged, or has a different format.
    """
    import h5py  # type: ignore[import-untyped]

    kind = h5py.check_vlen_dtype(dataset.dtype)
    if kind is None or np.dtype(kind).byteorder == ">" or dataset.file.userblock_size or dataset.id.get_create_plist().get_nfilters():
        raise UnplacedError
    kind = np.dtype(kind)
    try:
        references = _references(file, dataset)
        begin, size = np.zeros(len(references), np.int64), references["count"].astype(np.int64) * kind.itemsize
        objects: dict[int, dict[int, tuple[int, int]]] = {}
        for number, (count, heap, which) in enumerate(references.tolist()):
            if count:
                if heap not in objects:
                    objects[heap] = dict(_objects(file, heap))
                begin[number], length = objects[heap][which]
                if length != size[number]:
                    raise UnplacedError
    except (KeyError, struct.error, OverflowError, OSError, ValueError) as error:
        raise UnplacedError from error
    return VlenRows(kind, begin, size)


def _references(file: int, dataset: Any) -> Array:
    rows = len(dataset)
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is None or dataset.id.get_storage_size() != rows * _REFERENCE.itemsize:
            raise UnplacedError
        return np.frombuffer(os.pread(file, rows * _REFERENCE.itemsize, offset), _REFERENCE)
    all_references = np.zeros(rows, _REFERENCE)
    for index in range(dataset.id.get_num_chunks()):
        chunk = dataset.id.get_chunk_info(index)
        if chunk.filter_mask or chunk.byte_offset is None:
            raise UnplacedError
        references = np.frombuffer(os.pread(file, chunk.size, chunk.byte_offset), _REFERENCE)
        at = chunk.chunk_offset[0]
        all_references[at : at + len(references)] = references[: rows - at]
    return all_references


def _objects(file: int, heap: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the number of each object in a heap collection, with its file offset and size."""
    signature, version, size = _COLLECTION.unpack(os.pread(file, _COLLECTION.size, heap))
    if signature != b"GCOL" or version != 1 or not _COLLECTION.size <= size <= _MAX_COLLECTION:
        raise UnplacedError
    at = _COLLECTION.size
    heads = _reader(file, heap, size)
    while at + _OBJECT.size <= size:
        which, _, length = _OBJECT.unpack(heads(at))
        if which == 0:
            return
        if at + _OBJECT.size + length > size:
            raise UnplacedError
        yield which, (heap + at + _OBJECT.size, length)
        at += _OBJECT.size + -(-length // 8) * 8


def _reader(file: int, heap: int, size: int) -> Callable[[int], bytes]:
    """Return a function that reads an object's header at an offset in a collection; a collection of up to 64 KiB is read once."""
    if size <= 1 << 16:
        collection = os.pread(file, size, heap)
        return lambda at: collection[at : at + _OBJECT.size]
    return lambda at: os.pread(file, _OBJECT.size, heap + at)
