"""Convert PyTorch modules to graphs, through PyTorch's ONNX exporters, and write trained weights back into the modules."""

from snnc.frontends.torch.exporting import export_evaluated
from snnc.frontends.torch.importing import from_torch
from snnc.frontends.torch.weights import to_torch

__all__ = ["export_evaluated", "from_torch", "to_torch"]
