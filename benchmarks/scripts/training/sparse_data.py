"""Synthetic data for sparse training: pen strokes in the pixel format of N-MNIST, and words in the file format of SHD.

Both are generated from a seed. The samples of a kind share the corners of the stroke, or the tracks of the word's resonances.
"""

from __future__ import annotations

from snnc.benchmarks.strokes import KINDS, SIDE, strokes
from snnc.benchmarks.words import CHANNELS, SECONDS, WORDS, write_words

__all__ = ["CHANNELS", "KINDS", "SECONDS", "SIDE", "WORDS", "strokes", "write_words"]
