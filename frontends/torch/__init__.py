"""PyTorch modules -> Graph by way of PyTorch's own ONNX exporters, and trained weights back into the modules."""

from snnc.frontends.torch.exporting import export_evaluated
from snnc.frontends.torch.importing import from_torch
from snnc.frontends.torch.weights import to_torch

__all__ = ["export_evaluated", "from_torch", "to_torch"]
