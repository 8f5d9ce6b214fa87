"""Write model files completely or not at all, with large weights in a second file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import onnx
from onnx import ModelProto, StringStringEntryProto, TensorProto, checker, helper, numpy_helper

from snnc.compiler.files.temporary import TemporaryFolder
from snnc.compiler.ir.graph import Array
from snnc.frontends.onnx.writer.errors import CheckerError, OnnxFileError, WeightsTooLargeError

INSIDE: Final = (1 << 31) - (1 << 24)
"""Maximum size in bytes of weights inside the model file; protobuf is limited to 2 GiB."""
_SMALL: Final = 1024
"""Size in bytes up to which arrays, such as shapes and indices, always stay in the model file."""


def save(model: ModelProto, arrays: Mapping[str, Array], path: Path, inside: int = INSIDE) -> list[Path]:
    """Write `model` with `arrays` as its initializers, and return the written files.

    Raises
    ------
    OnnxFileError
        The folder cannot be written.
    CheckerError
        ONNX's checker refuses the model.
    WeightsTooLargeError
        The model exceeds the size limit of a file.
    """
    outside = sum(a.nbytes for a in arrays.values()) > inside
    data = path.name + ".data"
    try:
        temporary = TemporaryFolder(path.parent, f".{path.name}.")
    except OSError as error:
        raise OnnxFileError(f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    folder = temporary.path
    try:
        if outside:
            _write_arrays(model, arrays, folder / data)
        else:
            model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in arrays.items())
        (folder / path.name).write_bytes(_serialised(model, path))
        _check(folder / path.name)
        written = [path.parent / data, path] if outside else [path]
        for file in written:
            os.replace(folder / file.name, file)
    except OSError as error:
        raise OnnxFileError(f"{str(path)!r} cannot be written: {(error.strerror or str(error)).lower()}.") from None
    finally:
        temporary.close()
    return written


def _write_arrays(model: ModelProto, arrays: Mapping[str, Array], file: Path) -> None:
    """Write the arrays one after another to `file`, and refer to them in the model."""
    with file.open("wb") as stream:
        for name, array in arrays.items():
            if array.nbytes <= _SMALL:
                model.graph.initializer.append(numpy_helper.from_array(array, name))
                continue
            tensor = TensorProto(name=name, dims=array.shape, data_type=helper.np_dtype_to_tensor_dtype(array.dtype))
            tensor.data_location = TensorProto.EXTERNAL
            places = {"location": file.name, "offset": stream.tell(), "length": array.nbytes}
            tensor.external_data.extend(StringStringEntryProto(key=key, value=str(value)) for key, value in places.items())
            model.graph.initializer.append(tensor)
            array.tofile(stream)


def _serialised(model: ModelProto, path: Path) -> bytes:
    try:
        found: bytes = model.SerializeToString()
    except ValueError as error:
        raise WeightsTooLargeError(
            f"{str(path)!r} would exceed the 2 GiB of an ONNX file even with its weights in a second file ({error}); split the network."
        ) from None
    return found


def _check(file: Path) -> None:
    try:
        checker.check_model(str(file), full_check=False)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise CheckerError(
            f"ONNX's checker refuses the written model; this is a bug in snnc, please report it: {str(error)[:300]}"
        ) from None
