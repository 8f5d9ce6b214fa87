"""Batch normalisations in a package: the operation computes the statistics of a batch, and PyTorch stores the running statistics.

The passes of an update are described in :mod:`snnc.backends.training.updates.normalising`; here, one operation and its gradient run them.
"""

from __future__ import annotations

from snnc.backends.poplar.parts import Body
from snnc.backends.poplar.vertices.statistics import moments_name
from snnc.backends.runtime.errors import NormalisationError
from snnc.backends.training.updates.norm_layers import NormLayer, norm_layers, trains_normalised
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.neurons.library.batch_norm import EPSILON, MEAN, MOMENTUM, SHIFT, SLOPE, VARIANCE


def running(layer: NormLayer) -> tuple[str, str]:
    """Return the names of the parameters that contain the running mean and variance."""
    return layer.parameters[MEAN], layer.parameters[VARIANCE]


def norm_data(program: StepProgram, layer: NormLayer) -> Body:
    """Return the data for ``network.hpp``, with ``names`` in the order of the members of the C++ struct ``Normalisation``."""
    named = [layer.parameters[name] for name in (MEAN, VARIANCE, SHIFT, SLOPE, EPSILON)]
    return {
        "label": layer.label,
        "names": [*named, layer.gain, f"d_{layer.gain}", f"d_{layer.bias}"],
        "level": layer.level,
        "passed": layer.adjoint is not None,
        "shape": layer.shape,
        "shared": layer.shared,
        "population": layer.population,
        "moments": moments_name(next(output for output in program.outputs if output.id == layer.output)),
    }


def running_statistics(program: StepProgram, layer: NormLayer, samples: int) -> Body:
    """Return the description of running statistics for ``network.json``; `samples`: steps times samples of a micro-batch."""
    mean, variance = running(layer)
    momentum = float(program.parameters[layer.parameters[MOMENTUM]].value.reshape(-1)[0])
    values = layer.values_per_channel(samples)
    return {"label": layer.label, "mean": mean, "variance": variance, "momentum": momentum, "values": values}


def check_packaged(program: StepProgram, samples: int) -> None:
    """Raise an error for normalisations that a package cannot train; `samples`: steps times samples of a micro-batch.

    Raises a NormalisationError if a normalisation has statistics of each step, a gain or bias is not trained, or a channel has a single
    value in a micro-batch.
    """
    if not trains_normalised(program):
        return
    for layer in norm_layers(program):
        if layer.inputs:
            raise NormalisationError(
                f"{layer.label!r} has statistics of each step, which a package for PopTorch cannot train: they are inputs of the network, "
                "[steps, batch, neurons], which the host computes between passes, but PopTorch calls the operation only once. Use "
                "statistics over all steps (each_step=False), or compile for the machine itself."
            )
        if layer.summed:
            raise NormalisationError(
                f"the gain or the bias after {layer.label!r} is not trained, but in a package their gradients are the sums for the "
                "gradient through the statistics. Remove them from the frozen groups of the optimiser, or compile for the machine itself."
            )
        if samples:  # the sizes are known
            layer.require_two_values(layer.values_per_channel(samples))
