"""Dropout in a PyTorch package: in training, its module gets the masks as inputs, because each sample of each update has its own."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.poplar.parts import Body
from snnc.backends.training.updates.masks import DropoutLayer, masks_of
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import StepProgram


@dataclass(frozen=True)
class PackagedMask:
    """The mask of a dropout layer: an input of the operation, [batch, neurons].

    Attributes
    ----------
    name
        ABI name of the state with the mask.
    label
        Name of the layer in the model.
    layer
        The layer.
    """

    name: str
    label: str
    layer: DropoutLayer

    @property
    def description(self) -> Body:
        """Description for ``network.json``: `rate` and `seed` are names of parameters, `number` counts the dropout layers from 0."""
        layer = self.layer
        about = {"name": self.name, "label": self.label, "number": layer.number, "rate": layer.rate, "seed": layer.seed}
        return about | {"neurons": layer.neurons}


def packaged_masks(program: StepProgram) -> tuple[PackagedMask, ...]:
    """Return the masks of the dropout layers of a program, in the order of its populations."""
    steps = {op.population: op for op in program.forward if isinstance(op, NeuronStep)}
    infos = {info.id: info for info in program.populations}
    masks = []
    for layer in masks_of(program).layers:
        info = infos[layer.population]
        buffer = dict(zip(info.kernel.states, steps[info.id].states, strict=True))[layer.state]
        masks.append(PackagedMask(f"{buffer}_initial", info.label, layer))
    return tuple(masks)
