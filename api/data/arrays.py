"""Read and write npz archives: untrusted files are read safely, and files are written atomically."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from snnc.data.archive import Archive
from snnc.data.checks import check_exists
from snnc.data.whole_files import whole_file
from snnc.errors import DataFileError, MissingArrayError, PickledArrayError


def read_arrays(path: Path) -> Mapping[str, npt.NDArray[Any]]:
    """Open an npz archive; its arrays are read on request."""
    try:
        check_exists(path, "file")
        with path.open("rb") as stream:
            start = stream.read(6)
    except OSError as error:
        raise DataFileError(f"{str(path)!r} cannot be read as an npz archive: {str(error).rstrip('.')}.") from None
    if start.startswith(b"\x93NUMPY"):
        raise DataFileError(f"{str(path)!r} contains a single array; put arrays into an npz archive by name: numpy.savez(path, x=x).")
    if start.startswith(b"\x80"):
        raise PickledArrayError(f"{str(path)!r} is a pickle, which snnc does not load; save plain arrays with numpy.savez.")
    if not start.startswith(b"PK"):
        raise DataFileError(f"{str(path)!r} is not an npz archive; numpy.savez(path, x=x) writes one.")
    return Archive(path)


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an npz archive, completely or not at all; raise OutputFileError if it cannot be written."""
    with whole_file(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array), allow_pickle=False)


def pick(arrays: Mapping[str, npt.NDArray[Any]], name: str, path: Path) -> npt.NDArray[Any]:
    """Return one array of the archive `path`; raise MissingArrayError if it has no array of this name."""
    if name not in arrays:
        raise MissingArrayError(f"{str(path)!r} has no array {name!r}; it contains {', '.join(sorted(arrays)) or 'none'}.")
    return arrays[name]
