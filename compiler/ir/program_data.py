"""Conversion of a step program to plain data (JSON types) and back. Projects store it, so that opening one needs no lowering.

Every dataclass becomes an object with its fields; an operation also has its kind, ``"is"``. Equations are text in the language of neurons,
which is parsed and never evaluated. Kernels, neuron models and sparse patterns that are used several times are listed once. Loss and
optimiser are stored with the compile options; of a composed loss, the data also contain the outputs that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

from snnc.compiler.errors import GraphDataError, SnncError
from snnc.compiler.ir.arrays.sparse import Pattern
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_operations import BufferValue
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import Loss
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.optimizers import Optimizer
from snnc.compiler.losses.text import data_text, from_data_text
from snnc.compiler.neurons.kernel import Kernel
from snnc.compiler.neurons.neuron import NeuronModel
from snnc.compiler.neurons.plain_data import (
    decoded,
    decoded_fields,
    encoded,
    encoded_fields,
    field_types,
    json_list,
    json_object,
    wrong_value,
)

VERSION: Final = 1
"""Version of the format; other versions are refused."""
_SHARED: Final[Mapping[str, Any]] = {"models": NeuronModel, "kernels": Kernel, "patterns": Pattern}
"""Types whose equal values are stored once, in a list under the key given here."""
_OPTIONS: Final = ("loss", "optimizer")
"""Fields of a program that are stored with the compile options instead."""
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""An id or the name of a buffer: emitted code contains it unchanged."""

StoreArray: TypeAlias = Callable[[Array], Any]
"""Function that stores an array and returns a reference to it as JSON types."""
FindArray: TypeAlias = Callable[[Any], Array]
"""Function that returns the array for a reference from `StoreArray`; equal references return the same array."""


def program_to_data(program: StepProgram, store: StoreArray) -> dict[str, Any]:
    """Return `program` as JSON types; `store` is called for each array.

    The result contains neither the optimiser nor the loss, except a composed loss.
    """
    shared: dict[str, list[Any]] = {key: [] for key in _SHARED}

    def convert(hint: Any, value: Any, at: str) -> Any:
        if hint == Array:
            return store(value)
        key = _list_of(hint)
        return NotImplemented if key is None else _number_in(shared[key], value)

    values = {name: encoded(hint, getattr(program, name), convert) for name, hint in _program_fields().items()}
    lists = {key: [encoded_fields(value, convert) for value in values] for key, values in shared.items()}
    # The options contain the loss as the user gave it; the outputs that it reads are known only after lowering.
    bound = {"loss": data_text(program.loss)} if isinstance(program.loss, Composed) else {}
    return {"version": VERSION, **lists, **values, **bound}


def program_from_data(data: object, find: FindArray, loss: Loss | None, optimizer: Optimizer | None) -> StepProgram:
    """Return the program from the result of :func:`program_to_data`; `find` may raise GraphDataError.

    Data that are invalid, or have a different format, raise a GraphDataError, which says where.
    """
    try:
        program = _program(data, find, loss, optimizer)
        _check(program)
        return program
    except GraphDataError:
        raise
    except SnncError as error:
        raise GraphDataError(f"the step program is wrong: {error.text}") from None


def _program(data: object, find: FindArray, loss: Loss | None, optimizer: Optimizer | None) -> StepProgram:
    """Return the program from data that were not checked before."""
    if isinstance(data, dict) and data.get("version") != VERSION:
        raise GraphDataError(
            f"a different version of snnc wrote the step program (format {str(data.get('version'))[:20]}; this one reads {VERSION})."
        )
    hints = _program_fields()
    loss, data = _bound_loss(loss, data)
    program_data = json_object(data, "the step program", ("version", *_SHARED, *hints))
    shared: dict[str, list[Any]] = {}

    def convert(hint: Any, value: Any, at: str) -> Any:
        if hint == Array:
            return find(value)
        key = _list_of(hint)
        if key is None:
            return NotImplemented
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(shared[key]):
            raise wrong_value(at, f"the number of one of {len(shared[key])} {key}", value)
        return shared[key][value]

    for key, kind in _SHARED.items():
        shared[key] = [decoded_fields(kind, value, f"{key} {k}", convert) for k, value in enumerate(json_list(program_data[key], key))]
    return StepProgram(
        **{name: decoded(hint, program_data[name], name, convert) for name, hint in hints.items()}, loss=loss, optimizer=optimizer
    )


def _bound_loss(loss: Loss | None, data: object) -> tuple[Loss | None, object]:
    """Return the loss of the program, and the data without it."""
    if not isinstance(loss, Composed) or not isinstance(data, dict):
        return loss, data
    text = data.get("loss")
    bound = from_data_text(text) if isinstance(text, str) else loss.simplified()
    return bound, {name: value for name, value in data.items() if name != "loss"}


def _check(program: StepProgram) -> None:
    names = {*program.buffers, *(i.id for i in program.inputs), *(p.id for p in program.populations)}
    names |= {*(c.id for c in program.connections), *(o.id for o in program.outputs)}
    for name in names:
        if not _NAME.fullmatch(name):
            raise wrong_value("a name or id", "lower-case letters, digits and single underscores", name)
    for op in (*program.forward, *program.backward, *program.update):
        for name in _names_in(op):
            if name not in names:
                raise wrong_value(f"a name in {type(op).__name__}", "that of a buffer of the program", name)
    for key, buffer in program.buffers.items():
        if key != buffer.name:
            raise wrong_value(f"the name of the buffer {key!r}", "its key", buffer.name)
    for key, parameter in program.parameters.items():
        if key != parameter.name or key not in program.buffers or parameter.value.shape != program.buffers[key].shape:
            raise wrong_value(f"the parameter {key!r}", "of the shape of its buffer", parameter.value.shape)


def _names_in(op: Any) -> list[str]:
    names: list[str] = []
    for name, value in ((f.name, getattr(op, f.name)) for f in fields(op)):
        if isinstance(value, BufferValue):
            names.append(value.buffer)
        elif isinstance(value, str) and name != "kind":
            names.append(value)
        elif isinstance(value, tuple):
            names += [v for v in value if isinstance(v, str)]
    return names


def _program_fields() -> dict[str, Any]:
    return {name: hint for name, hint in field_types(StepProgram).items() if name not in _OPTIONS}


def _list_of(hint: Any) -> str | None:
    return next((key for key, kind in _SHARED.items() if hint is kind), None)


def _number_in(known: list[Any], value: Any) -> int:
    """Return the position of `value`, or of an equal one, in `known`; append it if it is new."""
    for number, other in enumerate(known):
        if other is value or other == value:
            return number
    known.append(value)
    return len(known) - 1
