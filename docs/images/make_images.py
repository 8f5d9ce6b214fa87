"""Draw the pictures of the documentation with snnc itself: ``python docs/images/make_images.py``."""

from __future__ import annotations

from pathlib import Path

import snnc
from snnc.inspect import render
from snnc.options import options
from snnc.project import compile_graph


def main() -> None:
    layers = [part for width in (512, 512, 256) for part in (snnc.Dense(width), snnc.Recurrent(snnc.LIF(beta=0.9)))]
    net = snnc.Sequential(700, *layers, snnc.Dense(20), snnc.LI(beta=0.9), name="spoken digits: 700-512-512-256-20, recurrent")
    plan = compile_graph(net.graph(), options("gc200", steps=100, batch=64, loss="ce_mean_membrane")).plan
    assert plan is not None
    (Path(__file__).parent / "spoken_digits.svg").write_text(render(plan, "svg"), encoding="utf-8")


if __name__ == "__main__":
    main()
