"""Combine samples and targets into a batch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

import numpy as np

from snnc.backends.runtime.events import Events, InputValues
from snnc.data.sample import Aer, Array, Sample, Spikes
from snnc.errors import SampleError


def collate(samples: Sequence[Sample], timed: bool) -> InputValues:
    """Return a batch [T, B, *shape] of spikes in steps, or of arrays of equal shape, whose first axis is time if `timed` (else T is 1).

    Spikes may differ in their number of steps. An address that occurs several times in a step is one spike.
    """
    first = samples[0]
    if isinstance(first, Spikes):
        return _spikes([_as_spikes(s, first) for s in samples])
    if isinstance(first, Aer) or any(isinstance(s, Aer | Spikes) for s in samples):
        raise SampleError("the samples are recorded events; bin them: data.map(snnc.data.Bin(steps=…, dt=…)).")
    arrays = [np.asarray(s) for s in cast("Sequence[Array]", samples)]
    shapes = {a.shape for a in arrays}
    if len(shapes) > 1:
        shown = ", ".join(str(list(s)) for s in sorted(shapes, key=str)[:3])
        raise SampleError(f"samples of one batch have the shapes {shown}; give all of them one shape, for example with map().")
    if timed and arrays[0].ndim < 1:
        raise SampleError("a sample is a single number; it must be [T, *shape].")
    return np.stack(arrays, axis=1) if timed else np.stack(arrays)[None]


def targets_of(targets: Sequence[Any]) -> Array:
    """Return the targets of a batch as an array: class indices as int64, other targets unchanged."""
    try:
        stacked = np.stack([np.asarray(t) for t in targets])
    except ValueError:
        stacked = np.empty(0, object)
    if stacked.dtype.kind not in "biuf":
        raise SampleError(f"the target of a sample is {targets[0]!r}; give class indices (whole numbers), or arrays of one shape.")
    return stacked.astype(np.int64) if stacked.dtype.kind in "iub" and stacked.ndim == 1 else stacked


def _as_spikes(sample: Sample, first: Spikes) -> Spikes:
    if not isinstance(sample, Spikes) or sample.shape != first.shape:
        shown = f"has shape {list(sample.shape)}" if isinstance(sample, Spikes) else "is not binned"
        raise SampleError(f"the first sample of a batch has shape {list(first.shape)} per step, but another {shown}; bin all to one shape.")
    return sample


def _spikes(samples: Sequence[Spikes]) -> Events:
    steps, shape = max(s.steps for s in samples), samples[0].shape
    sample = np.repeat(np.arange(len(samples)), [len(s.at) for s in samples])
    at, units = np.concatenate([s.at for s in samples]), np.concatenate([s.units for s in samples])
    if len(units) and (units.min() < 0 or units.max() >= prod(shape)):
        raise SampleError(f"a spike has the address {units[(units < 0) | (units >= prod(shape))][0]}; a step has {prod(shape)} addresses.")
    return Events.from_aer(at, sample, units, (max(steps, 1), len(samples), *shape))
