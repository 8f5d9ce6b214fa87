"""Whether predicted steps are the emulated ones: ``python benchmarks/scripts/drawn_networks.py [--seed S] [--nets 30] [--first 0]``.

Networks, machines, inputs and options are drawn at random from the seed: dense, sparse and convolutional layers, recurrence, delays,
values and spikes, windows of gradients, one to four chips, one to two hundred tiles. Each is trained for two steps on the emulator. The
script ends with 1 if the predicted cycles of the second step differ by more than 5 % from the emulated ones, or the predicted bytes of the
fullest tile by more than 1 %, for any network. One of the two is derived from the plan, the other counted by the program that runs, by the
same model of the machine: neither was measured on hardware.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Final

from prediction import compare, table
from prediction_nets import mixed_case, random_case

from snnc.compiler.errors import SnncError

CYCLES: Final = 0.05
BYTES: Final = 0.01
"""How far a prediction may be from what is emulated, as shares of it."""
SPACING: Final = 10_000
"""Networks of one seed have numbers of their own."""


def drawn(seed: int, nets: int, first: int = 0) -> Iterator[tuple[str, dict[str, tuple[float, float]]]]:
    """Yield a name and the (predicted, emulated) numbers of networks `first` to `nets` of a seed: of any connections, and dense, in turn.

    A network that its machine has no room for counts as none, and is not replaced.
    """
    for number in range(first, nets):
        kind, case_of = ("mixed", mixed_case) if number % 2 == 0 else ("random", random_case)
        own = SPACING * seed + number
        try:
            yield f"{kind}:{own}", compare(case_of(own))
        except SnncError as error:
            print(f"{kind}:{own}: {error.text}", file=sys.stderr)


def outside(found: dict[str, tuple[float, float]]) -> list[str]:
    """Return what is too far off, in words."""
    said = []
    for what, limit in (("cycles", CYCLES), ("peak bytes", BYTES)):
        predicted, emulated = found[what]
        if abs(predicted - emulated) > limit * emulated:
            said.append(f"{what}: predicted {predicted:,.0f}, emulated {emulated:,.0f}, {100 * (predicted / emulated - 1):+.1f} %")
    return said


def main() -> None:
    """Draw, compare, and say which networks are outside the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nets", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="leave out the networks before this one")
    chosen = parser.parse_args()
    found = {}
    for name, one in drawn(chosen.seed, chosen.nets, chosen.first):
        found[name] = one
        print(f"{name}: {'; '.join(outside(one)) or 'as predicted'}", flush=True)
    table(found)
    failed = [name for name, one in found.items() if outside(one)]
    within = f"{len(found) - len(failed)} of {len(found)} networks"
    print(f"{within} within {100 * CYCLES:g} % of cycles and {100 * BYTES:g} % of bytes; outside: {failed}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
