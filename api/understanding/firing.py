"""Warnings about layers that hardly fire or fire all the time: such layers learn slowly, if they learn."""

from __future__ import annotations

from typing import Final

from snnc.understanding.synops import MeasuredSynops

MOSTLY: Final = 0.5
"""Smallest share of silent or saturated neurons for which a layer is reported."""


def firing_warnings(measured: MeasuredSynops) -> list[str]:
    """Return a sentence for each layer of which at least half of the neurons are silent or saturated on the data."""
    found = []
    where = f"on {measured.samples:,} samples of {measured.source}"
    for name, share in measured.silent.items():
        if share >= MOSTLY:
            found.append(
                f"SNNC-W279: {100 * share:.0f} % of the neurons of {name!r} never fire {where}. Far below the threshold "
                "hardly any gradient flows: draw new weights (snnc.initialise with FluctuationDriven or LSUV), lower the threshold or "
                "scale the input."
            )
    for name, share in measured.saturated.items():
        if share >= MOSTLY:
            found.append(
                f"SNNC-W280: {100 * share:.0f} % of the neurons of {name!r} fire in nearly every step {where}: this "
                "carries no information. Draw smaller weights (snnc.initialise with FluctuationDriven or LSUV), raise the threshold or "
                "penalise the rate."
            )
    return found
