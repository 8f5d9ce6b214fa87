"""Read HDF5 files that may be damaged or malicious: only members stored in the file itself, after checking their sizes."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import h5py  # type: ignore[import-untyped]
import numpy as np

from snnc.compiler.ir.arrays.sizes import MAX_ELEMENTS
from snnc.compiler.ir.graph import Array
from snnc.frontends.nir.errors import NirEdgeError, NirFieldError, NirLinkError, NirTooLargeError, UnreadableNirError

MAX_BYTES: Final = 2**31
"""Maximum total bytes of all datasets of a file."""
MAX_MEMBERS: Final = 20_000
"""Maximum number of nodes, graphs and fields of a file."""
MAX_EDGES: Final = 100_000
MAX_TEXT: Final = 4_096
"""Maximum size of a name in bytes."""
MAX_CHUNKS: Final = 2**18
"""Maximum number of chunks of all datasets of a file; HDF5 looks up each one."""
MAX_ABSENT: Final = 1_000
"""Maximum number of chunks that were never written."""
_ADDRESS: Final = 8
"""Size in bytes of addresses and lengths in the file."""
_EXPANSION: Final = 1_100
"""Maximum ratio of array size to file size. Compression by deflate reaches at most 1032, so a larger array was never written."""


class HdfFile:
    """An open HDF5 file with read limits; methods raise a NirError if a part of the file is invalid or exceeds them."""

    def __init__(self, path: Path) -> None:
        try:
            self.size = path.stat().st_size
            check_heaps(path)
            self.file: Any = h5py.File(path, "r")
        except OSError as error:
            raise UnreadableNirError(
                f"{path} cannot be read as HDF5, the format of NIR files: {_reason(error)}. Write the file again."
            ) from None
        if self.file.id.get_create_plist().get_sizes() != (_ADDRESS, _ADDRESS):
            self.file.close()
            raise UnreadableNirError(f"{path} has addresses of other than {_ADDRESS} bytes, or is damaged. Write the file again with h5py.")
        # What remains of the limits; every read subtracts from it.
        self.bytes = MAX_BYTES
        self.members = MAX_MEMBERS
        self.chunks, self.absent = MAX_CHUNKS, MAX_ABSENT

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def names(self, group: Any, where: str) -> tuple[str, ...]:
        """Return the names of the members of `group`, in the order of h5py."""
        self.members -= len(group)
        if self.members < 0:
            raise NirTooLargeError(f"{where} brings the file to more than {MAX_MEMBERS:,} nodes and fields; split the network.")
        for name in group:
            # h5py returns a name that is not UTF-8 as bytes.
            if not isinstance(name, str) or not 0 < len(name.encode("utf-8", "replace")) <= MAX_TEXT:
                raise NirFieldError(f"{where} has a member whose name is not UTF-8 text of at most {MAX_TEXT} bytes: {name!r:.60}.")
        return tuple(group)

    def member(self, group: Any, name: str, where: str) -> Any:
        """Return the member `name` of `group`; None if the group has none."""
        link = group.get(name, getlink=True)
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            kind = "an external link" if isinstance(link, h5py.ExternalLink) else "a soft link"
            raise NirLinkError(
                f"{where}: {name!r} is {kind} to {str(link.path)[:100]!r}; snnc does not follow links. Copy its target into the file."
            )
        return group[name]

    def numbers(self, dataset: Any, where: str) -> Array:
        """Read a dataset of numbers: integers and booleans as int64, others as float32 or float64."""
        self._check(dataset, where)
        if dataset.dtype.kind not in "fiub":
            raise NirFieldError(f"{where} contains {_kind(dataset.dtype)} instead of numbers.")
        array = np.asarray(dataset[()])
        if array.dtype.kind == "f":
            return array if array.dtype == np.float32 else array.astype(np.float64)
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
            raise NirFieldError(f"{where} contains {array.max()}, which does not fit a 64-bit integer.")
        return array.astype(np.int64)

    def text(self, dataset: Any, where: str) -> str:
        """Read a dataset that contains a name."""
        self._check(dataset, where)
        # HDF5 can crash on other types declared by a damaged file, so values of these are not read.
        readable = h5py.check_string_dtype(dataset.dtype) is not None and dataset.size == 1 and dataset.dtype.itemsize <= MAX_TEXT
        value = np.asarray(dataset[()], object).reshape(-1)[0] if readable else None
        name = _decoded(value)
        if name is None:
            raise NirFieldError(f"{where} contains {_kind(dataset.dtype)} instead of one name.")
        return name

    def long_text(self, dataset: Any, where: str) -> str:
        """Read a dataset of one string of any length; invalid UTF-8 is replaced."""
        self._check(dataset, where)
        value = np.asarray(dataset[()], object).reshape(-1)[0]
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    def is_text(self, dataset: Any) -> bool:
        """Return whether a dataset contains a single string."""
        return isinstance(dataset, h5py.Dataset) and dataset.shape == () and h5py.check_string_dtype(dataset.dtype) is not None

    def pairs(self, dataset: Any, where: str) -> tuple[tuple[str, str], ...]:
        """Read a dataset of pairs of names."""
        self._check(dataset, where)
        if dataset.size == 0:
            return ()
        if dataset.ndim != 2 or dataset.shape[1] != 2 or h5py.check_string_dtype(dataset.dtype) is None:
            raise NirEdgeError(
                f"{where} is {_kind(dataset.dtype)} of shape {list(dataset.shape)}; edges must be pairs of node names, [edges, 2]."
            )
        if len(dataset) > MAX_EDGES:
            raise NirTooLargeError(f"{where}: {len(dataset):,} edges exceed the maximum of {MAX_EDGES:,}; split the network.")
        edges = []
        for source, target in dataset[()]:
            names = _decoded(source), _decoded(target)
            if names[0] is None or names[1] is None:
                raise NirEdgeError(f"{where} contains ({source!r:.60}, {target!r:.60}); both must be names in UTF-8.")
            edges.append((names[0], names[1]))
        return tuple(edges)

    def _check(self, dataset: Any, where: str) -> None:
        if not isinstance(dataset, h5py.Dataset):
            raise NirFieldError(f"{where} is an HDF5 group; it must be a dataset.")
        if dataset.is_virtual or dataset.external:
            raise NirLinkError(f"{where} is stored in another file (a virtual or external dataset); copy its values into this one.")
        if dataset.shape is None:
            raise NirFieldError(f"{where} is empty; write its values.")
        self._check_size(dataset, where)

    def _check_size(self, dataset: Any, where: str) -> None:
        count, width = math.prod(dataset.shape), max(1, dataset.dtype.itemsize)
        chunk = math.prod(dataset.chunks) if dataset.chunks else 0
        if count > MAX_ELEMENTS:
            raise NirTooLargeError(
                f"{where} has the shape {list(dataset.shape)}: {count:,} values, more than the maximum of {MAX_ELEMENTS:,}; split the "
                "network."
            )
        if max(count, chunk) * width > self.bytes:
            raise NirTooLargeError(
                f"{where} of shape {list(dataset.shape)} brings the file to more than {MAX_BYTES:,} bytes; split the network."
            )
        if count * width > self.size * _EXPANSION:
            raise NirTooLargeError(
                f"{where} has the shape {list(dataset.shape)} ({count * width:,} bytes), but the file has only {self.size:,} bytes, so "
                "the values were never written. Write the file again."
            )
        self.bytes -= count * width
        if dataset.chunks and count:
            self._check_chunks(dataset, where)

    def _check_chunks(self, dataset: Any, where: str) -> None:
        needed = math.prod(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks, strict=True))
        self.chunks -= needed
        if self.chunks < 0:
            raise NirTooLargeError(
                f"{where} of shape {list(dataset.shape)} is stored in {needed:,} chunks of {list(dataset.chunks)}, which brings the file "
                f"to more than {MAX_CHUNKS:,}; write it in larger chunks."
            )
        absent = needed - dataset.id.get_num_chunks()
        self.absent -= absent
        if self.absent < 0:
            raise NirTooLargeError(f"{where} is stored in {needed:,} chunks, {absent:,} of which were never written. Write the file again.")


def _reason(error: OSError) -> str:
    text = error.strerror or str(error)
    inner = text.partition("(")[2] if text.startswith(("Unable", "[Errno")) else text
    return (inner or text).partition("\n")[0].partition(", time =")[0].rstrip(")")[:160]


def _decoded(value: object) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8") if len(value) <= MAX_TEXT else None
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None


def _kind(dtype: np.dtype[Any]) -> str:
    if h5py.check_string_dtype(dtype) is not None:
        return "text"
    return {"O": "objects or references", "V": "records", "c": "complex numbers"}.get(dtype.kind, f"{dtype}")


_MARK: Final = b"GCOL\x01"
"""Signature and version at the start of a heap."""
_HEAD: Final = 16
"""Bytes before the content of a heap, and before the data of an object."""


def check_heaps(path: Path) -> None:
    """Refuse a file with an endless heap of variable-length text, which the HDF5 library would read forever.

    A heap is ``GCOL``, a version in 1 byte, 3 reserved bytes, its size in 8 bytes, then objects. An object is a number in 2 bytes, 6 other
    bytes, the size of its data in 8 bytes, and the data, padded to a multiple of 8 bytes. Number 0 is free space, whose size includes these
    first 16 bytes (HDF5 file format specification, "Global Heap").
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for start in _starts(data):
                if not _ends(data, start):
                    raise UnreadableNirError(f"{path} is damaged: its heap at byte {start:,} does not end. Write the file again.")


def _starts(data: mmap.mmap) -> Iterator[int]:
    start = -1
    while (start := data.find(_MARK, start + 1)) >= 0:
        yield start


def _ends(data: mmap.mmap, start: int) -> bool:
    """Return whether the objects of the heap at `start` lead to its end."""
    end = start + _number(data, start + 8, 8)
    if end > len(data):
        return True  # HDF5 itself refuses a heap that exceeds the file
    at = start + _HEAD
    while at + _HEAD <= end:
        length = _number(data, at + 8, 8)
        step = _HEAD + -(-length // 8) * 8 if _number(data, at, 2) else length
        if not 0 < step <= end - at:
            return False
        at += step
    return True


def _number(data: mmap.mmap, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
