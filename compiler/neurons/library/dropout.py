"""Dropout as a population, which multiplies currents by a mask that is constant over a sequence."""

from __future__ import annotations

from typing import Final

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.neuron import NeuronModel, neuron

_NAME: Final = "Dropout"
_SEEDS: Final = 1 << 24
"""Upper limit of a seed: like any parameter it is stored as float32, which represents smaller whole numbers exactly."""
_EQUATIONS: Final = "mask = detach(mask)\ny = mask * i"
MASK: Final = "mask"
"""State with the mask: 1 in inference; in training 0 for dropped neurons, and 1 / (1 - rate) for the others."""


def Dropout(rate: float = 0.5, seed: int = 0) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Multiply the current by a mask, ``y = mask * i``; in training, the mask is 0 for a random fraction of the neurons.

    The mask of a sample is the same at all steps (Lee et al. 2020, DOI 10.3389/fnins.2020.00119), and is drawn again at every
    update. Inference drops no values.

    Parameters
    ----------
    rate
        Fraction of the neurons with mask 0; the others have the mask ``1 / (1 - rate)``.
    seed
        Seed of the masks. A mask depends on the seed, the layer, the update, the position of the sample in the batch and the neuron, so
        masks are the same on every target, and after training is resumed.

    Raises
    ------
    NeuronDefinitionError
        `rate` is not in [0, 1), or `seed` is not a whole number from 0 to 2^24 - 1.
    """
    if not 0 <= rate < 1:
        raise NeuronDefinitionError(f"the rate of a dropout is {rate!r}; it must be 0 or more and below 1.")
    if not 0 <= seed < _SEEDS or seed != int(seed):
        raise NeuronDefinitionError(f"the seed of a dropout is {seed!r}; it must be a whole number from 0 to {_SEEDS - 1:,}.")
    return neuron(_NAME, states={MASK: 1}, params={"rate": rate, "seed": seed}, equations=_EQUATIONS, output="y")


def is_dropout(model: NeuronModel) -> bool:
    """Return whether `model` is a :func:`Dropout`."""
    return model.name == _NAME and {*model.parameters} == {"rate", "seed"} and model.text == _TEXT


_TEXT: Final = Dropout().text
