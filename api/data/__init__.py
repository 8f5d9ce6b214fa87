"""Data sets read batch by batch, and arrays read from users' files.

Each name is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from snnc import imports_for_type_checkers

if TYPE_CHECKING:
    from snnc.data.adapter import adapt
    from snnc.data.augmentation import DropEvents, DropTime, Jitter, Shift
    from snnc.data.binning import Bin
    from snnc.data.checksums import verify_archive
    from snnc.data.data_set import DataSet, Transform
    from snnc.data.data_set import SampleSource as Source
    from snnc.data.encoders import Delta, Latency, Population, Rate, Repeat, Threshold
    from snnc.data.readers.gesture import dvs_gesture
    from snnc.data.readers.heidelberg import shd, ssc
    from snnc.data.readers.mnist import mnist
    from snnc.data.readers.nmnist import nmnist
    from snnc.data.readers.plain import in_memory, npy, npz
    from snnc.data.sample import Aer, Spikes

__all__ = [
    "Aer", "Bin", "DataSet", "Delta", "DropEvents", "DropTime", "Jitter", "Latency", "Population", "Rate", "Repeat", "Shift", "Source",
    "Spikes", "Threshold", "Transform", "adapt", "dvs_gesture", "in_memory", "mnist", "nmnist", "npy", "npz", "shd", "ssc",
    "verify_archive",
]  # fmt: skip
_SOURCES: Final = imports_for_type_checkers(__file__)


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module 'snnc.data' has no attribute {name!r}")
    module, attribute = _SOURCES[name]
    return getattr(import_module(module), attribute)
