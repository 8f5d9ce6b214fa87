"""Read an npz archive as a mapping; arrays are loaded on request, after their declared sizes have been checked."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.arrays.sizes import machine_memory
from snnc.errors import ArraySizeError, DataFileError, MemoryShortError, PickledArrayError

_EXPANSION: Final = 1_100
"""Largest ratio of inflated to deflated size that is accepted; deflate reaches 1032."""
_SLACK: Final = 1_024
"""Bytes accepted in addition to this ratio, for small arrays."""
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_SUFFIX: Final = ".npy"
_HEADERS: Final = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Function that reads the header of an npy file, by version of the format."""
_TRIES: Final = 10
"""Attempts to parse a header, see :func:`call_parser`."""

T = TypeVar("T")


@dataclass(frozen=True)
class _Member:
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Archive(Mapping[str, npt.NDArray[Any]]):
    """The arrays of an npz archive by name; each is loaded once, on request.

    Raise DataFileError for a damaged archive, ArraySizeError if the declared size of an array differs from its actual size,
    PickledArrayError if an array contains Python objects; on request of an array, MemoryShortError if it exceeds the memory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[str, npt.NDArray[Any]] = {}
        with self._open() as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            self._members = {info.filename.removesuffix(_SUFFIX): self._member(archive, info) for info in infos}
        if len(self._members) != len(infos):
            raise DataFileError(f"{str(path)!r} cannot be read as an npz archive: two of its arrays have the same name.")

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._read:
            self._read[name] = self._load(self._members[name], name)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def _member(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
        name = info.filename.removesuffix(_SUFFIX)
        if info.compress_type not in _METHODS:
            raise DataFileError(
                f"{str(self._path)!r} cannot be read as an npz archive: {name!r} uses a compression method that snnc does not read; "
                "save it with numpy.savez or savez_compressed."
            )
        max_size = info.compress_size if info.compress_type == zipfile.ZIP_STORED else _EXPANSION * info.compress_size + _SLACK
        if info.file_size > max_size:
            raise ArraySizeError(
                f"the array {name!r} of {str(self._path)!r} declares {info.file_size:,} bytes, but the {info.compress_size:,} bytes of the "
                f"archive expand to {max_size:,} at most; write the archive again."
            )
        with archive.open(info) as stream:
            shape, dtype = self._header(stream, name)
            stored = info.file_size - stream.tell()
        member = _Member(info, shape, dtype)
        if member.bytes != stored:
            raise ArraySizeError(
                f"the array {name!r} of {str(self._path)!r} declares the shape {_short(shape)} of {dtype}, {member.bytes:,} bytes, but "
                f"contains {stored:,} bytes; write the archive again."
            )
        return member

    def _header(self, stream: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise DataFileError(f"{str(self._path)!r}: {name!r} contains records; save plain arrays of numbers.")
        shape, _, dtype = call_parser(_HEADERS[version], stream)
        if dtype.hasobject:
            raise pickled(self._path)
        if any(not isinstance(n, int) or n < 0 for n in shape):
            raise ArraySizeError(f"the array {name!r} of {str(self._path)!r} declares the shape {_short(shape)}; write the archive again.")
        return shape, dtype

    def _load(self, member: _Member, name: str) -> npt.NDArray[Any]:
        memory = machine_memory()
        if member.bytes > memory:
            raise MemoryShortError(
                f"the array {name!r} of {str(self._path)!r} has the shape {_short(member.shape)} of {member.dtype}, {member.bytes:,} "
                f"bytes, but this machine has {memory:,} bytes of memory; give fewer samples or steps."
            )
        with self._open() as archive, archive.open(member.info) as stream:
            return call_parser(partial(np.lib.format.read_array, allow_pickle=False), stream)

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        """Open the file; replace every error caused by a damaged file by one with a code."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield archive
        except SnncError:
            raise
        except Exception as error:  # numpy and zipfile raise errors of any kind for a damaged file
            if "pickle" in str(error):
                raise pickled(self._path) from None
            reason = str(error).split("\n")[0][:200].rstrip(".") or "it ends too early"
            raise DataFileError(f"{str(self._path)!r} cannot be read as an npz archive: {reason}.") from None


def pickled(path: Path) -> PickledArrayError:
    """Return the error for a file that contains Python objects."""
    return PickledArrayError(f"{str(path)!r} contains pickled Python objects, which snnc does not load; save plain arrays.")


def call_parser(parse: Callable[[IO[bytes]], T], stream: IO[bytes]) -> T:
    """Call a function of NumPy that parses a header; repeat the call if another thread disturbed CPython's parser.

    In CPython before 3.11.8 and 3.12.2, ``ast.literal_eval`` may raise SystemError if several threads call it at once:
    https://github.com/python/cpython/issues/106905.
    """
    start = stream.tell()
    for _ in range(_TRIES - 1):
        try:
            return parse(stream)
        except SystemError:
            stream.seek(start)
    return parse(stream)


class RenamedArrays(Mapping[str, npt.NDArray[Any]]):
    """Some of `arrays` under other names, read on request; `names` maps each new name to the original one."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], names: Mapping[str, str]) -> None:
        self._arrays, self._names = arrays, names

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[self._names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def _short(shape: tuple[int, ...]) -> str:
    text = str(list(shape))
    return text if len(text) <= 80 else f"{text[:77]}…"
