"""snnc: a graph compiler for spiking neural networks.

Exports the public names and ``__version__``. Each name is imported on first use, so that ``import snnc`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    __version__: str
    from snnc import data as data
    from snnc import losses as losses
    from snnc import recipe as recipe
    from snnc import schedules as schedules
    from snnc.backends.runtime.events import Events as Events
    from snnc.backends.training.saving.checkpoint import Checkpoints as Checkpoints
    from snnc.backends.training.schedules import LinearSchedule as Linear  # noqa: F401
    from snnc.checks.verifying import verify as verify
    from snnc.compiler.errors import SnncError as SnncError
    from snnc.compiler.ir.graph import Graph as Graph
    from snnc.compiler.ir.plan import Plan as Plan
    from snnc.compiler.losses import MeanSquaredCount as MeanSquared  # noqa: F401
    from snnc.compiler.losses.loss_scale import LossScale as LossScale
    from snnc.compiler.losses.optimizers import SGD as SGD
    from snnc.compiler.losses.optimizers import Adam as Adam
    from snnc.compiler.losses.optimizers import AdamW as AdamW
    from snnc.compiler.losses.optimizers import Group as Group
    from snnc.compiler.losses.optimizers import RMSprop as RMSprop
    from snnc.compiler.lowering.capacities import Share as Share
    from snnc.compiler.lowering.half_numbers import HalfNumbers as HalfNumbers
    from snnc.compiler.neurons.library import ALIF as ALIF
    from snnc.compiler.neurons.library import IF as IF
    from snnc.compiler.neurons.library import LI as LI
    from snnc.compiler.neurons.library import LIF as LIF
    from snnc.compiler.neurons.library import LSTM as LSTM
    from snnc.compiler.neurons.library import SLSTM as SLSTM
    from snnc.compiler.neurons.library import Alpha as Alpha
    from snnc.compiler.neurons.library import CubaLIF as CubaLIF
    from snnc.compiler.neurons.library import Dropout as Dropout
    from snnc.compiler.neurons.library import I as I
    from snnc.compiler.neurons.library import Lapicque as Lapicque
    from snnc.compiler.neurons.neuron import NeuronModel as NeuronModel
    from snnc.compiler.neurons.neuron import neuron as Neuron  # noqa: F401, N812
    from snnc.compiler.neurons.surrogates.library import parse_surrogate as Surrogate  # noqa: F401, N812
    from snnc.driver.compiling import compile as compile
    from snnc.driver.compiling import open as open
    from snnc.driver.converting import ann2snn as ann2snn
    from snnc.driver.estimating import Estimate as Estimate
    from snnc.driver.estimating import estimate as estimate
    from snnc.driver.loading import load_model as load  # noqa: F401
    from snnc.driver.losses import cross_entropy as CrossEntropy  # noqa: F401, N812
    from snnc.exploring import explore as explore
    from snnc.frontends.dsl.connections import AvgPool as AvgPool
    from snnc.frontends.dsl.connections import BatchNorm as BatchNorm
    from snnc.frontends.dsl.connections import Conv as Conv
    from snnc.frontends.dsl.connections import Dense as Dense
    from snnc.frontends.dsl.connections import Flatten as Flatten
    from snnc.frontends.dsl.connections import MaxPool as MaxPool
    from snnc.frontends.dsl.connections import OneToOne as OneToOne
    from snnc.frontends.dsl.connections import Sparse as Sparse
    from snnc.frontends.dsl.connections import SumPool as SumPool
    from snnc.frontends.dsl.connections import UniformDelay as UniformDelay
    from snnc.frontends.dsl.initialisers import Constant as Constant
    from snnc.frontends.dsl.initialisers import FanIn as FanIn
    from snnc.frontends.dsl.initialisers import KaimingNormal as KaimingNormal
    from snnc.frontends.dsl.initialisers import KaimingUniform as KaimingUniform
    from snnc.frontends.dsl.initialisers import LogNormal as LogNormal
    from snnc.frontends.dsl.initialisers import Normal as Normal
    from snnc.frontends.dsl.initialisers import Orthogonal as Orthogonal
    from snnc.frontends.dsl.initialisers import TruncatedNormal as TruncatedNormal
    from snnc.frontends.dsl.initialisers import Uniform as Uniform
    from snnc.frontends.dsl.initialisers import XavierNormal as XavierNormal
    from snnc.frontends.dsl.initialisers import XavierUniform as XavierUniform
    from snnc.frontends.dsl.network import Network as Network
    from snnc.frontends.dsl.sequential import Recurrent as Recurrent
    from snnc.frontends.dsl.sequential import sequential as Sequential  # noqa: F401, N812
    from snnc.frontends.onnx.writer.write import write_onnx as write_onnx
    from snnc.frontends.torch import from_torch as from_torch
    from snnc.frontends.torch import to_torch as to_torch
    from snnc.initialising import LSUV as LSUV
    from snnc.initialising import FluctuationDriven as FluctuationDriven
    from snnc.initialising import initialise as initialise
    from snnc.session import Session as Session

_NAMES: Final = {
    "backends.runtime.events": ("Events",),
    "backends.training.saving.checkpoint": ("Checkpoints",),
    "checks.verifying": ("verify",),
    "compiler.errors": ("SnncError",),
    "compiler.ir.graph": ("Graph",),
    "compiler.ir.plan": ("Plan",),
    "compiler.losses.loss_scale": ("LossScale",),
    "compiler.losses.optimizers": ("SGD", "Adam", "AdamW", "Group", "RMSprop"),
    "compiler.lowering.capacities": ("Share",),
    "compiler.lowering.half_numbers": ("HalfNumbers",),
    "compiler.neurons.library": ("ALIF", "IF", "LI", "LIF", "LSTM", "SLSTM", "Alpha", "CubaLIF", "Dropout", "I", "Lapicque"),
    "compiler.neurons.neuron": ("NeuronModel",),
    "driver.compiling": ("compile", "open"),
    "driver.converting": ("ann2snn",),
    "driver.estimating": ("Estimate", "estimate"),
    "exploring": ("explore",),
    "frontends.dsl.connections": (
        "AvgPool", "BatchNorm", "Conv", "Dense", "Flatten", "MaxPool", "OneToOne", "Sparse", "SumPool", "UniformDelay",
    ),
    "frontends.dsl.initialisers": (
        "Constant", "FanIn", "KaimingNormal", "KaimingUniform", "LogNormal", "Normal", "Orthogonal", "TruncatedNormal", "Uniform",
        "XavierNormal", "XavierUniform",
    ),
    "frontends.dsl.network": ("Network",),
    "frontends.dsl.sequential": ("Recurrent",),
    "frontends.onnx.writer.write": ("write_onnx",),
    "frontends.torch": ("from_torch", "to_torch"),
    "initialising": ("LSUV", "FluctuationDriven", "initialise"),
    "session": ("Session",),
}  # fmt: skip
"""Modules below ``snnc``, and the public names that each of them defines."""
_RENAMED: Final = {
    "CrossEntropy": "driver.losses:cross_entropy",
    "Linear": "backends.training.schedules:LinearSchedule",
    "MeanSquared": "compiler.losses:MeanSquaredCount",
    "Neuron": "compiler.neurons.neuron:neuron",
    "Sequential": "frontends.dsl.sequential:sequential",
    "Surrogate": "compiler.neurons.surrogates.library:parse_surrogate",
    "load": "driver.loading:load_model",
}
"""Public names that differ from the name in the defining module, as public name -> ``module:name``."""
_HOMES: Final = {name: f"{module}:{name}" for module, names in _NAMES.items() for name in names} | _RENAMED
_MODULES: Final = ("data", "losses", "recipe", "schedules")
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("snnc")
    if name in _MODULES:
        return import_module(f"snnc.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'snnc' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(f"snnc.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES, "__version__"})
