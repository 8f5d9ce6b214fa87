"""Data sets read batch by batch, and arrays read from users' files.

Each name is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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

_NAMES: Final = {
    "adapter": ("adapt",),
    "augmentation": ("DropEvents", "DropTime", "Jitter", "Shift"),
    "binning": ("Bin",),
    "checksums": ("verify_archive",),
    "data_set": ("DataSet", "Transform"),
    "encoders": ("Delta", "Latency", "Population", "Rate", "Repeat", "Threshold"),
    "readers.gesture": ("dvs_gesture",),
    "readers.heidelberg": ("shd", "ssc"),
    "readers.mnist": ("mnist",),
    "readers.nmnist": ("nmnist",),
    "readers.plain": ("in_memory", "npy", "npz"),
    "sample": ("Aer", "Spikes"),
}
"""Public names by the module that defines them; the class of ``Source`` is ``SampleSource``."""
_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names} | {"Source": "data_set"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'snnc.data' has no attribute {name!r}")
    return getattr(import_module(f"snnc.data.{_HOMES[name]}"), "SampleSource" if name == "Source" else name)
