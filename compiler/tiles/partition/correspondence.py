"""Correspondence between a program and its partitioned or reordered form, to convert parameters, inputs, states and results.

The *whole* program is the original one. The *parts* are the populations of the partitioned or reordered program.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.step_program import PopulationInfo, StepProgram
from snnc.compiler.lowering.window_values import is_window_value
from snnc.compiler.tiles.partition.hypergraph import Ints
from snnc.compiler.tiles.partition.split import ArrayPiece, Split


@dataclass(frozen=True, eq=False)
class Correspondence:
    """The whole program, its partitioned form, and the place of each population, parameter, output and buffer in the whole program."""

    whole: StepProgram
    program_of_parts: StepProgram
    """The two programs; inputs have the same ids in both."""
    parameters: Mapping[str, ArrayPiece]
    outputs: Mapping[str, ArrayPiece]
    populations: Mapping[str, ArrayPiece]
    """Place of each parameter (by name), output and population (by id) of `program_of_parts`."""
    buffers: Mapping[str, ArrayPiece]
    """Place of each output buffer of the populations of `program_of_parts`, and of the buffer of each input."""
    inputs: Mapping[str, Ints] = field(default_factory=dict)
    """For inputs that `program_of_parts` reads in a different order: indices of the values in its order."""

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """Ids of the parts of each divided population, by its label."""
        ids_by_label: dict[str, tuple[str, ...]] = {}
        for id_, place in self.populations.items():
            if place.index is not None:
                label = next(p.label for p in self.whole.populations if p.id == place.whole)
                ids_by_label[label] = (*ids_by_label.get(label, ()), id_)
        return {label: ids for label, ids in ids_by_label.items() if len(ids) > 1}

    def parameters_of_parts(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Convert parameters of the whole program to parameters of the parts."""
        of_parts = {}
        for name, place in self.parameters.items():
            if place.whole in values:
                whole = np.asarray(values[place.whole])
                shape = self.program_of_parts.parameters[name].value.shape
                of_parts[name] = whole if place.index is None else whole.reshape(-1)[place.index].reshape(shape)
        return of_parts

    def names_of_parts(self, names: Collection[str]) -> list[str]:
        """Return the names of the parts' parameters that correspond to the parameters `names` of the whole program."""
        return [name for name, place in self.parameters.items() if place.whole in names]

    def parameters_of_whole(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """Convert parameters or gradients of the parts to those of the whole program; elements that no part provides are 0."""
        of_whole: dict[str, Array] = {}
        for name, place in self.parameters.items():
            if name in values:
                shape = self.whole.parameters[place.whole].value.shape
                if place.whole not in of_whole:
                    of_whole[place.whole] = np.zeros(shape, values[name].dtype)
                of_whole[place.whole].reshape(-1)[slice(None) if place.index is None else place.index] = values[name].reshape(-1)
        return of_whole

    def inputs_of_parts(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Convert inputs, id -> [T, B, *shape] (static ones [B, *shape]), to those of the parts."""
        if not self.inputs:
            return inputs
        shapes = {info.id: info.shape for info in self.whole.inputs}
        of_parts = dict(inputs)
        for id_, values in self.inputs.items():
            if id_ in inputs:
                array = np.asarray(inputs[id_])
                leading = array.shape[: array.ndim - len(shapes[id_])]
                of_parts[id_] = array.reshape(*leading, -1)[..., values].reshape(array.shape)
        return of_parts

    def records_of_whole(self, records: Mapping[str, Array]) -> dict[str, Array]:
        """Convert records, output id -> [T, B, *shape], of the parts to those of the whole program; some outputs may be missing."""
        infos = {o.id: o for o in self.whole.outputs}
        of_whole: dict[str, Array] = {}
        for id_, place in self.outputs.items():
            if id_ not in records:
                continue
            record, info = records[id_], infos[place.whole]
            if place.index is None:
                of_whole[place.whole] = record
                continue
            steps, batch = record.shape[:2]
            if place.whole not in of_whole:
                of_whole[place.whole] = np.zeros((steps, batch, *info.shape), record.dtype)
            of_whole[place.whole].reshape(steps, batch, -1)[:, :, place.index] = record.reshape(steps, batch, -1)
        return {info.id: of_whole[info.id] for info in self.whole.outputs if info.id in of_whole}

    def adjoint_of_whole(self, tensor: str, read: Callable[[str], Array]) -> Array:
        """Return the adjoint of a population's current, ``d_<id>`` [T, B, n]; `read` returns the adjoint of a part by its name."""
        parts = [(place.index, read(f"d_{id_}")) for id_, place in self.populations.items() if f"d_{place.whole}" == tensor]
        whole = np.zeros((*parts[0][1].shape[:2], sum(values.shape[2] for _, values in parts)), np.float32)
        for index, values in parts:
            whole[:, :, slice(None) if index is None else index] = values
        return whole

    def initial_of_parts(self, initial: Mapping[tuple[str, str], Array]) -> dict[tuple[str, str], Array]:
        """Convert initial values, (population id, state or output buffer) -> [B, n], to those of the parts."""
        of_parts = {}
        infos = {p.id: p for p in self.whole.populations}
        for info in self.program_of_parts.populations:
            place = self.populations[info.id]
            for (population, name), values in initial.items():
                part_name = _same_place(infos[population], name, info) if population == place.whole else None
                if part_name is not None:
                    of_parts[info.id, part_name] = values if place.index is None else np.ascontiguousarray(values[:, place.index])
        return of_parts


def _same_place(whole: PopulationInfo, name: str, part: PopulationInfo) -> str | None:
    """Return the state or output buffer of `part` that corresponds to `name` of `whole`; None if it has no counterpart."""
    if name in whole.kernel.states:
        labels = {part.kernel.labels[s]: s for s in part.kernel.states}
        return labels.get(whole.kernel.labels[name])
    port = next(port for port, buffer in whole.output_buffers.items() if buffer == name)
    return part.output_buffers.get(port)


def correspond(whole: StepProgram, split: StepProgram, cut: Split) -> Correspondence:
    """Find the counterparts in `whole` of the names of `split`, which is ``cut.graph`` lowered to a program."""
    ids = {p.label: p for p in whole.populations}
    labels = {p.id: p.label for p in split.populations}

    def place(names: Mapping[str, str], label: str, pieces: Mapping[str, ArrayPiece]) -> ArrayPiece:
        piece = pieces.get(label, ArrayPiece(label, None))
        return replace(piece, whole=names[piece.whole])

    def window_bound(name: str) -> ArrayPiece:
        """Return the place of a bound of a gradient window; all parts of a population share a window."""
        id_, _, end = name.partition("_")
        piece = cut.populations.get(labels[id_])
        return ArrayPiece(f"{ids[labels[id_] if piece is None else piece.whole].id}_{end}", None)

    by_label = {p.label: p.name for p in whole.parameters.values()}
    parameters = {
        name: window_bound(name) if is_window_value(name) else place(by_label, p.label, cut.parameters)
        for name, p in split.parameters.items()
    }
    output_ids = {o.label: o.id for o in whole.outputs}
    outputs = {o.id: place(output_ids, o.label, cut.outputs) for o in split.outputs}
    populations, buffers = {}, {}
    for info in split.populations:
        piece = cut.populations.get(info.label, ArrayPiece(info.label, None))
        whole_info = ids[piece.whole]
        populations[info.id] = replace(piece, whole=whole_info.id)
        buffers.update({buffer: replace(piece, whole=whole_info.output_buffers[port]) for port, buffer in info.output_buffers.items()})
    buffers.update({f"{i.id}_in": ArrayPiece(f"{i.id}_in", None) for i in split.inputs})
    return Correspondence(whole, split, parameters, outputs, populations, buffers)
