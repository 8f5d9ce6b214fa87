"""A cost model of the published program: the IPU program of arXiv 2311.04386, which trains spiking networks."""

from __future__ import annotations

from snnc.benchmarks.published.net import PublishedLayer, PublishedNet
from snnc.benchmarks.published.options import PublishedOptions
from snnc.benchmarks.published.predict import predict_published
from snnc.benchmarks.published.simulate import moving_strokes, simulate

__all__ = [
    "PublishedLayer",
    "PublishedNet",
    "PublishedOptions",
    "moving_strokes",
    "predict_published",
    "simulate",
]
