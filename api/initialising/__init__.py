"""New initial weights for a network of any front end: fluctuation-driven, LSUV on data, or one of the DSL's initialisers."""

from __future__ import annotations

from snnc.initialising.fluctuation import FluctuationDriven
from snnc.initialising.initialise import initialise
from snnc.initialising.lsuv import LSUV

__all__ = ["LSUV", "FluctuationDriven", "initialise"]
