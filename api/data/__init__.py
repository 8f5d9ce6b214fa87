"""Data sets read batch by batch, and arrays read from users' files.

Each name is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from snnc.data.adapter import adapt as adapt
    from snnc.data.augmentation import DropEvents as DropEvents
    from snnc.data.augmentation import DropTime as DropTime
    from snnc.data.augmentation import Jitter as Jitter
    from snnc.data.augmentation import Shift as Shift
    from snnc.data.binning import Bin as Bin
    from snnc.data.checksums import verify_archive as verify_archive
    from snnc.data.data_set import DataSet as DataSet
    from snnc.data.data_set import SampleSource as Source  # noqa: F401
    from snnc.data.data_set import Transform as Transform
    from snnc.data.encoders import Delta as Delta
    from snnc.data.encoders import Latency as Latency
    from snnc.data.encoders import Population as Population
    from snnc.data.encoders import Rate as Rate
    from snnc.data.encoders import Repeat as Repeat
    from snnc.data.encoders import Threshold as Threshold
    from snnc.data.readers.gesture import dvs_gesture as dvs_gesture
    from snnc.data.readers.heidelberg import shd as shd
    from snnc.data.readers.heidelberg import ssc as ssc
    from snnc.data.readers.mnist import mnist as mnist
    from snnc.data.readers.nmnist import nmnist as nmnist
    from snnc.data.readers.plain import in_memory as in_memory
    from snnc.data.readers.plain import npy as npy
    from snnc.data.readers.plain import npz as npz
    from snnc.data.sample import Aer as Aer
    from snnc.data.sample import Spikes as Spikes

_HOMES: Final = {
    "Aer": "sample",
    "Bin": "binning",
    "DataSet": "data_set",
    "Delta": "encoders",
    "DropEvents": "augmentation",
    "DropTime": "augmentation",
    "Jitter": "augmentation",
    "Latency": "encoders",
    "Population": "encoders",
    "Rate": "encoders",
    "Repeat": "encoders",
    "Shift": "augmentation",
    "Source": "data_set:SampleSource",
    "Spikes": "sample",
    "Threshold": "encoders",
    "Transform": "data_set",
    "adapt": "adapter",
    "dvs_gesture": "readers.gesture",
    "in_memory": "readers.plain",
    "mnist": "readers.mnist",
    "nmnist": "readers.nmnist",
    "npy": "readers.plain",
    "npz": "readers.plain",
    "shd": "readers.heidelberg",
    "ssc": "readers.heidelberg",
    "verify_archive": "checksums",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'snnc.data' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(f"snnc.data.{module}"), attribute or name)
