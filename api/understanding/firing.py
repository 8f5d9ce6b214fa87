"""Warnings about layers that hardly ever fire or fire all the time; such layers learn slowly or not at all."""

from __future__ import annotations

from typing import Final

from snnc.understanding.synops import MeasuredSynops

MOSTLY: Final = 0.5
"""Smallest share of silent or saturated neurons at which a layer is reported."""
_SILENT: Final = (
    "SNNC-W279: {share:.0f} % of the neurons of {name!r} never fire {where}. Far below the threshold, gradients are close to 0: draw new "
    "weights (snnc.initialise with FluctuationDriven or LSUV), lower the threshold or scale the input."
)
_SATURATED: Final = (
    "SNNC-W280: {share:.0f} % of the neurons of {name!r} fire in nearly every step {where}: this carries no information. Draw smaller "
    "weights (snnc.initialise with FluctuationDriven or LSUV), raise the threshold or penalise the rate."
)


def firing_warnings(measured: MeasuredSynops) -> list[str]:
    """Return a warning for each layer with at least half of its neurons silent or saturated on the data."""
    where = f"on {measured.samples:,} samples of {measured.source}"
    return [
        text.format(share=100 * share, name=name, where=where)
        for text, shares in ((_SILENT, measured.silent), (_SATURATED, measured.saturated))
        for name, share in shares.items()
        if share >= MOSTLY
    ]
