"""Data sets named on the command line or in a recipe, such as ``shd:path/to/shd_train.h5``, and their conversion to network inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from snnc.compiler.ir.graph import Shape
from snnc.data.binning import Bin
from snnc.data.data_set import DataSet
from snnc.data.encoders import Latency, Rate, Repeat
from snnc.data.readers.gesture import dvs_gesture
from snnc.data.readers.heidelberg import shd, ssc
from snnc.data.readers.mnist import mnist
from snnc.data.readers.nmnist import nmnist
from snnc.data.sample import Aer, Draw, Sample, Spikes
from snnc.errors import DataOptionError

_EVENTS: Final[Mapping[str, Callable[[Path], DataSet]]] = {"shd": shd, "ssc": ssc, "nmnist": nmnist, "dvsgesture": dvs_gesture}
_IMAGES: Final[Mapping[str, Callable[[Path], DataSet]]] = {"mnist": mnist}
KINDS: Final = {**_EVENTS, **_IMAGES}
"""Reader of each kind of data set, by name."""
_ENCODERS: Final[Mapping[str, Callable[[int], Rate | Latency | Repeat]]] = {"rate": Rate, "latency": Latency, "repeat": Repeat}
_FOR_IMAGES: Final = ("encoder",)
_FOR_EVENTS: Final = ("dt", "duration", "downsample", "polarity")


@dataclass(frozen=True)
class Reading:
    """Settings that convert samples to inputs; None selects the default.

    `steps` is the number of steps, by default that of the network. `dt`, `duration`, `downsample` and `polarity` are for events, see
    :class:`snnc.data.Bin`; `encoder` is for images: ``"rate"`` (the default), ``"latency"`` or ``"repeat"``.
    """

    steps: int | None = None
    dt: float | None = None
    duration: float | None = None
    downsample: int | None = None
    polarity: str | None = None
    encoder: str | None = None

    @property
    def given_names(self) -> list[str]:
        """Names of the settings that are not None."""
        return [f.name for f in fields(self) if getattr(self, f.name) is not None]


def split_name(text: str) -> tuple[str, Path] | None:
    """Return the kind and the path of ``KIND:PATH``; None for the path of an archive. Raise DataOptionError for an unknown kind."""
    kind, colon, path = text.partition(":")
    if not colon or Path(text).exists() or kind.endswith(".npz"):  # a path may contain a colon, too
        return None
    if kind not in KINDS or not path:
        *others, last = KINDS
        raise DataOptionError(f"{text!r} is not data: give an npz archive, or KIND:PATH, where KIND is {', '.join(others)} or {last}.")
    return kind, Path(path)


def as_inputs(data: DataSet, kind: str, reading: Reading, steps: int | None, shape: Shape | None) -> DataSet:
    """Return the data set, of a kind in :data:`KINDS`, with its samples binned or encoded as inputs of a network.

    `steps` is the network's number of steps (None if it is open), `shape` the shape of its input (None if it has several).
    """
    other = [name for name in reading.given_names if name in (_FOR_IMAGES if kind in _EVENTS else _FOR_EVENTS)]
    if other:
        raise DataOptionError(f"{other[0]} has no effect on the data set {kind!r}; leave it out.")
    steps = steps if reading.steps is None else reading.steps
    converted = data.map(_binning(kind, reading, steps) if kind in _EVENTS else _encoder(kind, reading, steps))
    return converted if shape is None else converted.map(_Shaped(shape))


def _binning(kind: str, reading: Reading, steps: int | None) -> Bin:
    if steps is None and reading.dt is None:
        raise DataOptionError(f"{kind!r} contains events; give the number of steps (--bin-steps) or the length of a step (--bin-time).")
    chosen: dict[str, Any] = {name: getattr(reading, name) for name in _FOR_EVENTS if getattr(reading, name) is not None}
    return Bin(steps=steps, **chosen)


def _encoder(kind: str, reading: Reading, steps: int | None) -> Rate | Latency | Repeat:
    if steps is None:
        raise DataOptionError(f"{kind!r} contains images; give the number of steps in which to encode them (--bin-steps).")
    name = reading.encoder or "rate"
    if name not in _ENCODERS:
        raise DataOptionError(f"the encoder is {name!r}; it must be rate, latency or repeat.")
    return _ENCODERS[name](steps)


@dataclass(frozen=True)
class _Shaped:
    """Reshape each step to the network's input if the sizes are equal: 2 x 34 x 34 pixels become 2312 neurons."""

    shape: Shape
    gives_time: bool = False

    def apply(self, sample: Sample, draw: Draw) -> Sample:
        if isinstance(sample, Spikes):
            return Spikes(sample.at, sample.units, sample.steps, self.shape) if prod(sample.shape) == prod(self.shape) else sample
        lead = 1 if draw.timed else 0
        if isinstance(sample, Aer) or prod(np.shape(sample)[lead:]) != prod(self.shape):
            return sample
        return np.asarray(sample).reshape(*np.shape(sample)[:lead], *self.shape)
