"""Dropout as a population: each neuron multiplies its current by a factor that is constant over a sequence."""

from __future__ import annotations

from typing import Final

from snnc.compiler.errors import NeuronDefinitionError
from snnc.compiler.neurons.neuron import NeuronModel, neuron

_NAME: Final = "Dropout"
_SEEDS: Final = 1 << 24
"""Limit of a seed: it is stored as float32, like any parameter, which represents whole numbers below this exactly."""
_EQUATIONS: Final = "mask = detach(mask)\ny = mask * i"
MASK: Final = "mask"
"""The state that holds the factor: 1 in a run; in a training step 0 for dropped neurons, and 1 / (1 - rate) for the others."""


def Dropout(rate: float = 0.5, seed: int = 0) -> NeuronModel:  # noqa: N802 - named like the neurons
    """Pass on the current; in training, a random share of the neurons passes on nothing: ``y = mask * i``.

    A sample's mask is the same at every step of its sequence (Lee et al. 2020, DOI 10.3389/fnins.2020.00119), and is drawn again at every
    update. Runs drop nothing.

    Parameters
    ----------
    rate
        Share of the neurons whose mask is 0; that of the others is ``1 / (1 - rate)``.
    seed
        Seed of the masks. They follow from it, the layer, the update, the sample's place in the batch and the neuron, so that they are the
        same on every target, and after training is resumed.

    Raises
    ------
    NeuronDefinitionError
        `rate` is not between 0 and 1, or `seed` is not a whole number below 2^24.
    """
    if not 0 <= rate < 1:
        raise NeuronDefinitionError(f"the rate of a dropout is {rate!r}; it must be 0 or more and below 1.")
    if not 0 <= seed < _SEEDS or seed != int(seed):
        raise NeuronDefinitionError(f"the seed of a dropout is {seed!r}; it must be a whole number of 0 or more, below {_SEEDS:,}.")
    return neuron(_NAME, states={MASK: 1}, params={"rate": rate, "seed": seed}, equations=_EQUATIONS, output="y")


def is_dropout(model: NeuronModel) -> bool:
    """Return whether `model` is a :func:`Dropout`."""
    return model.name == _NAME and {*model.parameters} == {"rate", "seed"} and model.text == _TEXT


_TEXT: Final = Dropout().text
