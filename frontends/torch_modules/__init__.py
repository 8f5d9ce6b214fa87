"""PyTorch modules -> Graph by way of PyTorch's own ONNX exporters, and trained weights back into the modules."""

from snnc.frontends.torch_modules.exporting import export_evaluated
from snnc.frontends.torch_modules.importing import from_torch
from snnc.frontends.torch_modules.weights import to_torch

__all__ = ["export_evaluated", "from_torch", "to_torch"]
