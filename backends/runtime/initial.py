"""Convert initial values of states, which a caller gives by name, to those that an engine needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.arrays import checked
from snnc.backends.runtime.engine import Array
from snnc.backends.runtime.errors import DataShapeError, UnknownNameError
from snnc.compiler.ir.arrays.array_parts import arrays_with_parts, split_into_parts
from snnc.compiler.ir.graph import StateRef
from snnc.compiler.ir.shapes import size
from snnc.compiler.ir.step_program import PopulationInfo, StepProgram
from snnc.compiler.losses.weight_rounding import nearest


def initial_states(program: StepProgram, initial: Mapping[str, npt.ArrayLike], batch: int) -> dict[tuple[str, str], Array]:
    """Return initial values as (population id, name) -> [B, n]; a name is that of a state in the kernel or of an output buffer.

    `initial` maps names of states to numbers, or to arrays for one or all samples; an array ``state`` sets its parts ``state[0]``,
    ``state[1]``, … Values of float16 states are rounded. A state that delayed connections read is set in the population and in the output
    buffer. Raises an UnknownNameError for a name that is not a state, and a DataShapeError for a value with another shape than its
    population.
    """
    known = state_names(program)
    values = {}
    for name, value in split_into_parts(initial, known).items():
        if name not in known:
            _refuse(program, name, known, np.shape(value))
        info = program.population(known[name].node)
        stores = stores_of(info, known[name].name)
        rounds = info.kernel.halves.intersection(stores)
        for store in stores:
            buffer = program.buffers.get(store)
            array = checked(value, "values" if buffer is None else buffer.kind, f"the initial state {name!r}")
            if array.shape not in ((), info.shape, (batch, *info.shape)):
                raise DataShapeError(
                    f"the initial state {name!r} has shape {list(array.shape)}; "
                    f"give a number, {list(info.shape)} or {[batch, *info.shape]}."
                )
            full = np.broadcast_to(nearest(array) if rounds else array, (batch, *info.shape))
            values[info.id, store] = full.reshape(batch, size(info.shape))
    return values


def _refuse(program: StepProgram, name: str, known: Mapping[str, StateRef], shape: tuple[int, ...]) -> NoReturn:
    parts = arrays_with_parts(known).get(name)
    if parts:
        raise DataShapeError(
            f"the initial state {name!r} has shape {list(shape)}, but its parts are {', '.join(parts)}; "
            "give it the shape that it has in the model file."
        )
    raise UnknownNameError(f"there is no state {name!r}; {program.name!r} has {', '.join(known) or 'none'}.")


def state_names(program: StepProgram) -> dict[str, StateRef]:
    """Return the states by the names that a caller may use: ``"population.state"``, and the names of states in the file."""
    names = {f"{info.label}.{info.kernel.labels[s]}": StateRef(info.id, s) for info in program.populations for s in info.kernel.states}
    return names | dict(program.state_inputs)


def stores_of(info: PopulationInfo, name: str) -> list[str]:
    """Return the names of the state and of the output buffer that store `name`, a state of the kernel or an output port of the model."""
    label = info.kernel.labels[name] if name in info.kernel.states else name
    states = [s for s in info.kernel.states if info.kernel.labels[s] == label]
    return states + ([info.output_buffers[label]] if label in info.output_buffers else [])
