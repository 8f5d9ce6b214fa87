"""The custom operation as a function of tensors."""

import ctypes
import os

import torch

from .description import FOLDER, NETWORK

try:
    import poptorch
except ImportError as error:
    raise ImportError(
        "PopTorch is not installed, but this package needs it. It is not on PyPI: its wheel is part of the Poplar SDK (Python 3.8, "
        "torch 2.0.1 for SDK 3.3 and 3.4). Enable the SDK, then install the wheel. Without an IPU and without the SDK, snnc emulates "
        "both: python -m snnc.emulated_poptorch train.py"
    ) from error

LIBRARY = "SNNC_OPERATION_LIBRARY"
"""Environment variable: the library to load instead of build/libspiking_network.so."""
STATISTICS = NETWORK.get("statistics", [])
"""Batch normalisations: names of their running mean and variance, momentum, and number of values in a mean."""


def _load():
    path = os.environ.get(LIBRARY) or str(FOLDER / "build" / "libspiking_network.so")
    if not os.path.exists(path):
        raise FileNotFoundError("{} does not exist; enable the Poplar SDK and run make in {}".format(path, FOLDER))
    return ctypes.cdll.LoadLibrary(path)


_LOADED = _load()


def run_operation(tensors, of_batch=False):
    """Return the records of the network, [batch, steps, ...] each, the counts of spikes that populations dropped, and statistics by name.

    `tensors` contains the inputs, parameters and states of the network by name. The counts are a tensor of integers, one for each worker
    that counts; PopTorch passes floats with the same bits (see `dropped_spikes`). With `of_batch`, layers are normalised with the mean
    and variance of the batch, which are the statistics that are returned; the running ones among `tensors` are not read.
    """
    outputs, records = NETWORK["operation_outputs"], len(NETWORK["operation_outputs"]) - NETWORK["counted"]
    names = [name for norm in STATISTICS for name in (norm["mean"], norm["variance"])] if of_batch else []
    examples = [torch.zeros(o["shape"], dtype=torch.float32) for o in outputs] + [torch.zeros_like(tensors[name]) for name in names]
    kind = {"statistics": "batch" if of_batch else "running"} if STATISTICS else {}
    results = poptorch.custom_op(
        [tensors[name] for name in NETWORK["operation_inputs"]],
        NETWORK["operation"],
        NETWORK["domain"],
        1,
        example_outputs=examples,
        attributes=dict(kind, folder=str(FOLDER)),
    )
    counts, statistics = results[records : len(outputs)], results[len(outputs) :]
    return results[:records], torch.cat(list(counts)) if counts else None, dict(zip(names, statistics))


def dropped_spikes(counts):
    """Return the number of spikes that populations dropped: the sum of the counts of all calls."""
    return int(counts.contiguous().view(torch.int32).to(torch.int64).sum())
