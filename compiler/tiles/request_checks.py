"""Checks of a plan's request before the search: options in their ranges, and sequences that can fit at all."""

from __future__ import annotations

from typing import Final

from snnc.compiler.ir.arrays.sizes import FLOAT
from snnc.compiler.machines.target import Target
from snnc.compiler.tiles.errors import HopelessError, MappingOptionError
from snnc.compiler.tiles.network import MappedNetwork

HOPELESS: Final = 4
"""Multiple of the memory above which no plan is searched; below it, the search finds remedies."""


def check_options(target: Target, *, steps: int, batch: int, chips: int | None, mode: str, gradients: str, recompute: object) -> None:
    """Check numbers and words.

    Raises
    ------
    MappingOptionError
        One is outside its range.
    """
    for name, value in (("steps", steps), ("batch", batch)):
        if value < 1:
            raise MappingOptionError(f"{name} is {value}; it is 1 or more.")
    if chips is not None and not 1 <= chips <= target.chips:
        raise MappingOptionError(f"chips is {chips}; the target {target.name} has 1 to {target.chips}.")
    if mode not in ("exact", "drop"):
        raise MappingOptionError(f"mode is {mode!r}; it is 'exact' or 'drop'.")
    if gradients not in ("auto", "dense", "windowed"):
        raise MappingOptionError(f"gradients is {gradients!r}; it is 'auto', 'dense' or 'windowed'.")
    if recompute not in ("auto", "off") and (isinstance(recompute, bool) or not isinstance(recompute, int) or recompute < 1):
        raise MappingOptionError(f"recompute is {recompute!r}; it is 'auto', 'off', or the iterations of a segment, 1 or more.")


def check_streaming(target: Target, streaming: str) -> None:
    """Check the data allowed outside the tiles.

    Raises
    ------
    MappingOptionError
        The word is not known, or the target has no such memory.
    """
    known = ("auto", "off", "inputs", "boundaries", "history")
    if streaming not in known:
        raise MappingOptionError(f"streaming is {streaming!r}; it is {', '.join(known[:-1])} or {known[-1]}.")
    if streaming in ("boundaries", "history") and target.streaming is None:
        raise MappingOptionError(
            f"streaming is {streaming!r}, but the target {target.name} defines no streaming memory; add a section [streaming] to its file."
        )


def check_length(network: MappedNetwork, target: Target, steps: int, batch: int) -> None:
    """Refuse sequences whose outputs alone, which tiles keep for all steps, are many times the tiles' memory.

    The time that a search takes grows with steps and samples, so this comes first.

    Raises
    ------
    HopelessError
        With the numbers.
    """
    widest = max(network.layers, key=lambda layer: layer.records, default=None)
    if widest is None or not widest.records:
        return
    one, there = FLOAT * steps * widest.records, target.tile_bytes
    if one > HOPELESS * there:
        raise HopelessError(
            f"{steps:,} steps do not fit on {target.name}: all steps of the outputs of one neuron of layer {widest.label!r}, "
            f"for one sample, take {one:,} bytes on one tile, which has {there:,}. "
            f"At most {there // (FLOAT * widest.records):,} steps fit; run shorter sequences one after the other.",
            needed=one,
            available=there,
            layer=widest.label,
            category="records",
            category_bytes=one,
        )
    whole, room = FLOAT * steps * batch * sum(layer.neurons * layer.records for layer in network.layers), there * target.tiles
    if whole > HOPELESS * room:
        raise HopelessError(
            f"{batch:,} samples of {steps:,} steps do not fit on {target.name}: their outputs alone take {whole:,} bytes, and its "
            f"{target.tiles:,} tiles have {room:,}. Take {max(1, batch * room // whole):,} samples at once or fewer, or shorter sequences.",
            needed=whole,
            available=room,
            layer=widest.label,
            category="records",
            category_bytes=whole,
        )
