"""Arrays in npz archives, read without trust and written whole."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from snnc.errors import ArrayValueError, DataFileError, LabelError, MissingArrayError, PickledArrayError
from snnc.files import whole_file


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read all arrays of an npz archive.

    Raises
    ------
    DataFileError
        The file is missing, unreadable or no npz archive.
    PickledArrayError
        An array holds Python objects.
    ArrayValueError
        An array holds anything but finite numbers.
    """
    try:
        if not path.is_file():
            raise DataFileError(f"the data file {str(path)!r} does not exist." if not path.exists() else f"{str(path)!r} is not a file.")
        with np.load(path, allow_pickle=False) as archive:
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataFileError(f"{str(path)!r} holds a single array; put arrays into an npz archive by name: numpy.savez(path, x=x).")
            return {name: _checked(archive, name, path) for name in archive.files}
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError) as error:
        raise DataFileError(f"{str(path)!r} cannot be read as an npz archive: {str(error).rstrip('.') or 'it ends too early'}.") from None
    except (ValueError, AttributeError, TypeError) as error:
        if "pickle" in str(error):
            raise PickledArrayError(f"{str(path)!r} is or holds pickled Python objects, which snnc does not load; save plain arrays.") from None
        raise DataFileError(f"{str(path)!r} cannot be read as an npz archive: {str(error).rstrip('.')}.") from None


def write_arrays(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an npz archive, whole or not at all.

    Raises
    ------
    OutputFileError
        The file cannot be written.
    """
    with whole_file(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array), allow_pickle=False)


def pick(arrays: Mapping[str, npt.NDArray[Any]], name: str, path: Path) -> npt.NDArray[Any]:
    """Return one array.

    Raises
    ------
    MissingArrayError
        It is not there.
    """
    if name not in arrays:
        raise MissingArrayError(f"{str(path)!r} has no array {name!r}; it holds {', '.join(sorted(arrays)) or 'none'}.")
    return arrays[name]


def labels(values: npt.NDArray[Any], samples: int) -> npt.NDArray[np.int64]:
    """Check class indices.

    Raises
    ------
    LabelError
        They are not whole numbers of 0 or more, one for each sample.
    """
    if values.ndim != 1 or len(values) != samples:
        raise LabelError(f"the labels y have shape {values.shape}; {samples} samples need shape ({samples},).")
    whole = values.astype(np.int64)
    if len(values) and ((whole != values).any() or whole.min() < 0):
        raise LabelError("the labels y hold something else than class indices 0, 1, 2 …")
    return whole


def _checked(archive: Mapping[str, npt.NDArray[Any]], name: str, path: Path) -> npt.NDArray[Any]:
    array = archive[name]
    if array.dtype.kind not in "biuf":
        raise ArrayValueError(f"the array {name!r} of {str(path)!r} has type {array.dtype}; real numbers are needed.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ArrayValueError(f"the array {name!r} of {str(path)!r} holds NaN or infinity at {int((~np.isfinite(array)).sum())} places.")
    return array
