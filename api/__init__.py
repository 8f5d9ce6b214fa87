"""snnc: a graph compiler for spiking neural networks.

Everything a program needs is here, and ``__version__``; names are imported when they are first used, so that ``import snnc`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    __version__: str
    from snnc.backends.checkpoint import Checkpoints as Checkpoints
    from snnc.backends.events import Events as Events
    from snnc.compiler.errors import SnncError as SnncError
    from snnc.compiler.graph import Graph as Graph
    from snnc.compiler.losses import MeanSquaredCount as MeanSquared  # noqa: F401
    from snnc.compiler.neuron import NeuronModel as NeuronModel
    from snnc.compiler.neuron import neuron as Neuron  # noqa: F401, N812
    from snnc.compiler.neurons import ALIF as ALIF
    from snnc.compiler.neurons import IF as IF
    from snnc.compiler.neurons import LI as LI
    from snnc.compiler.neurons import LIF as LIF
    from snnc.compiler.neurons import SLSTM as SLSTM
    from snnc.compiler.neurons import Alpha as Alpha
    from snnc.compiler.neurons import CubaLIF as CubaLIF
    from snnc.compiler.neurons import I as I
    from snnc.compiler.neurons import Lapicque as Lapicque
    from snnc.compiler.optimizers import SGD as SGD
    from snnc.compiler.optimizers import Adam as Adam
    from snnc.compiler.plan import Plan as Plan
    from snnc.compiler.surrogates import parse_surrogate as Surrogate  # noqa: F401, N812
    from snnc.compiling import compile as compile
    from snnc.compiling import open as open
    from snnc.converting import ann2snn as ann2snn
    from snnc.estimating import Estimate as Estimate
    from snnc.estimating import estimate as estimate
    from snnc.exploring import explore as explore
    from snnc.frontends.connections import AvgPool as AvgPool
    from snnc.frontends.connections import Conv as Conv
    from snnc.frontends.connections import Dense as Dense
    from snnc.frontends.connections import Flatten as Flatten
    from snnc.frontends.connections import MaxPool as MaxPool
    from snnc.frontends.connections import OneToOne as OneToOne
    from snnc.frontends.connections import Sparse as Sparse
    from snnc.frontends.connections import SumPool as SumPool
    from snnc.frontends.connections import UniformDelay as UniformDelay
    from snnc.frontends.dsl import Network as Network
    from snnc.frontends.initialisers import Constant as Constant
    from snnc.frontends.initialisers import FanIn as FanIn
    from snnc.frontends.initialisers import KaimingNormal as KaimingNormal
    from snnc.frontends.initialisers import KaimingUniform as KaimingUniform
    from snnc.frontends.initialisers import LogNormal as LogNormal
    from snnc.frontends.initialisers import Normal as Normal
    from snnc.frontends.initialisers import Orthogonal as Orthogonal
    from snnc.frontends.initialisers import TruncatedNormal as TruncatedNormal
    from snnc.frontends.initialisers import Uniform as Uniform
    from snnc.frontends.initialisers import XavierNormal as XavierNormal
    from snnc.frontends.initialisers import XavierUniform as XavierUniform
    from snnc.frontends.onnx_writer.write import write_onnx as write_onnx
    from snnc.frontends.sequential import Recurrent as Recurrent
    from snnc.frontends.sequential import sequential as Sequential  # noqa: F401, N812
    from snnc.frontends.torch_modules import from_torch as from_torch
    from snnc.frontends.torch_modules import to_torch as to_torch
    from snnc.loading import load_model as load  # noqa: F401
    from snnc.losses import cross_entropy as CrossEntropy  # noqa: F401, N812
    from snnc.session import Session as Session
    from snnc.verifying import verify as verify

_HOMES: Final = {
    "ALIF": "snnc.compiler.neurons:ALIF",
    "Adam": "snnc.compiler.optimizers:Adam",
    "Alpha": "snnc.compiler.neurons:Alpha",
    "AvgPool": "snnc.frontends.connections:AvgPool",
    "Checkpoints": "snnc.backends.checkpoint:Checkpoints",
    "Constant": "snnc.frontends.initialisers:Constant",
    "Conv": "snnc.frontends.connections:Conv",
    "CrossEntropy": "snnc.losses:cross_entropy",
    "CubaLIF": "snnc.compiler.neurons:CubaLIF",
    "Dense": "snnc.frontends.connections:Dense",
    "Estimate": "snnc.estimating:Estimate",
    "Events": "snnc.backends.events:Events",
    "FanIn": "snnc.frontends.initialisers:FanIn",
    "Flatten": "snnc.frontends.connections:Flatten",
    "Graph": "snnc.compiler.graph:Graph",
    "I": "snnc.compiler.neurons:I",
    "IF": "snnc.compiler.neurons:IF",
    "KaimingNormal": "snnc.frontends.initialisers:KaimingNormal",
    "KaimingUniform": "snnc.frontends.initialisers:KaimingUniform",
    "LI": "snnc.compiler.neurons:LI",
    "LIF": "snnc.compiler.neurons:LIF",
    "Lapicque": "snnc.compiler.neurons:Lapicque",
    "LogNormal": "snnc.frontends.initialisers:LogNormal",
    "MaxPool": "snnc.frontends.connections:MaxPool",
    "MeanSquared": "snnc.compiler.losses:MeanSquaredCount",
    "Network": "snnc.frontends.dsl:Network",
    "Neuron": "snnc.compiler.neuron:neuron",
    "NeuronModel": "snnc.compiler.neuron:NeuronModel",
    "Normal": "snnc.frontends.initialisers:Normal",
    "OneToOne": "snnc.frontends.connections:OneToOne",
    "Orthogonal": "snnc.frontends.initialisers:Orthogonal",
    "Plan": "snnc.compiler.plan:Plan",
    "Recurrent": "snnc.frontends.sequential:Recurrent",
    "SGD": "snnc.compiler.optimizers:SGD",
    "SLSTM": "snnc.compiler.neurons:SLSTM",
    "Sequential": "snnc.frontends.sequential:sequential",
    "Session": "snnc.session:Session",
    "SnncError": "snnc.compiler.errors:SnncError",
    "Sparse": "snnc.frontends.connections:Sparse",
    "SumPool": "snnc.frontends.connections:SumPool",
    "Surrogate": "snnc.compiler.surrogates:parse_surrogate",
    "TruncatedNormal": "snnc.frontends.initialisers:TruncatedNormal",
    "Uniform": "snnc.frontends.initialisers:Uniform",
    "UniformDelay": "snnc.frontends.connections:UniformDelay",
    "XavierNormal": "snnc.frontends.initialisers:XavierNormal",
    "XavierUniform": "snnc.frontends.initialisers:XavierUniform",
    "ann2snn": "snnc.converting:ann2snn",
    "compile": "snnc.compiling:compile",
    "estimate": "snnc.estimating:estimate",
    "explore": "snnc.exploring:explore",
    "from_torch": "snnc.frontends.torch_modules:from_torch",
    "load": "snnc.loading:load_model",
    "open": "snnc.compiling:open",
    "to_torch": "snnc.frontends.torch_modules:to_torch",
    "verify": "snnc.verifying:verify",
    "write_onnx": "snnc.frontends.onnx_writer.write:write_onnx",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("snnc")
    if name not in _HOMES:
        raise AttributeError(f"module 'snnc' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, "__version__"})
