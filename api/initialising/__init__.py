"""Draw new initial weights for a network of any frontend."""

from __future__ import annotations

from snnc.initialising.fluctuation import FluctuationDriven
from snnc.initialising.initialise import initialise
from snnc.initialising.lsuv import LSUV

__all__ = ["LSUV", "FluctuationDriven", "initialise"]
