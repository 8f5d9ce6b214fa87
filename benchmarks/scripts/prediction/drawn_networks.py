"""Compare predictions and emulation of random networks.

    python benchmarks/scripts/prediction/drawn_networks.py [--seed S] [--first 0] [--end 30]

Networks, machines, inputs and options are drawn at random from the seed: dense, sparse and convolutional layers, recurrence, delays,
values and spikes, windowed gradients, one to four chips, up to 238 tiles. Each is trained for two steps on the emulator. The
script exits with 1 if, for any network, the predicted cycles of the second step differ by more than 5 % from the emulated ones, or the
predicted bytes of the fullest tile by more than 1 %. The prediction is derived from the plan, and the emulated program counts its own
cycles, both by the same model of the machine; neither was measured on hardware.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Final

from mixed_nets import mixed_case
from prediction import compare, table
from prediction_nets import random_case

from snnc.compiler.errors import SnncError

CYCLES: Final = 0.05
BYTES: Final = 0.01
"""Maximum accepted deviations of predicted from emulated cycles and bytes, relative to the emulated numbers."""
SPACING: Final = 10_000
"""Number of networks that can be drawn from one seed: network n of seed S is drawn with the seed SPACING * S + n."""


def drawn(seed: int, first: int, end: int) -> Iterator[tuple[str, dict[str, tuple[float, float]]]]:
    """Yield the name and the (predicted, emulated) numbers of networks `first` to `end` - 1 of a seed.

    Networks with even numbers (``mixed``) have dense, sparse and convolutional connections, those with odd numbers (``random``) only dense
    ones. A network that does not fit its machine is skipped and not replaced.
    """
    for number in range(first, end):
        kind, case_of = ("mixed", mixed_case) if number % 2 == 0 else ("random", random_case)
        case_seed = SPACING * seed + number
        try:
            yield f"{kind}:{case_seed}", compare(case_of(case_seed))
        except SnncError as error:
            print(f"{kind}:{case_seed}: {error.text}", file=sys.stderr)


def outside(numbers: dict[str, tuple[float, float]]) -> list[str]:
    """Return the deviations outside the limits, as text."""
    deviations = []
    for what, limit in (("cycles", CYCLES), ("peak bytes", BYTES)):
        predicted, emulated = numbers[what]
        if abs(predicted - emulated) > limit * emulated:
            deviations.append(f"{what}: predicted {predicted:,.0f}, emulated {emulated:,.0f}, {100 * (predicted / emulated - 1):+.1f} %")
    return deviations


def main() -> None:
    """Draw and compare networks, and print those outside the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--end", type=int, default=30, help="number after that of the last network")
    chosen = parser.parse_args()
    rows = {}
    for name, one in drawn(chosen.seed, chosen.first, chosen.end):
        rows[name] = one
        print(f"{name}: {'; '.join(outside(one)) or 'as predicted'}", flush=True)
    table(rows)
    failed = [name for name, one in rows.items() if outside(one)]
    within = f"{len(rows) - len(failed)} of {len(rows)} networks"
    print(f"{within} within {100 * CYCLES:g} % of cycles and {100 * BYTES:g} % of bytes; outside: {failed}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
