"""Draw new initial weights for a network of any frontend.

The methods are fluctuation-driven initialisation, LSUV (layer-sequential unit variance, on data), and the initialisers of the Python DSL.
"""

from __future__ import annotations

from snnc.initialising.fluctuation import FluctuationDriven
from snnc.initialising.initialise import initialise
from snnc.initialising.lsuv import LSUV

__all__ = ["LSUV", "FluctuationDriven", "initialise"]
