"""Read and write NIR files: networks in the Neuromorphic Intermediate Representation, a format of several frameworks."""

from __future__ import annotations

from snnc.frontends.nir.load import load_nir
from snnc.frontends.nir.writing.write import write_nir

__all__ = ["load_nir", "write_nir"]
