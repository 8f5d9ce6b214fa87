"""Draw new initial weights for a network of any frontend: fluctuation-driven, LSUV on data, or an initialiser of the DSL."""

from __future__ import annotations

from snnc.initialising.fluctuation import FluctuationDriven
from snnc.initialising.initialise import initialise
from snnc.initialising.lsuv import LSUV

__all__ = ["LSUV", "FluctuationDriven", "initialise"]
