"""Rows with the counts of products and moved words of the networks whose energy is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from snnc.benchmarks.matched import matched_problem
from snnc.benchmarks.reproduce.energy import SynapticWork, moved_words, synaptic_work
from snnc.driver.activity import measure_activity

ENERGY_NETS: Final = ("w1-5", "w1-ff-5", "w3-5", "w2-5", "logged-h2-a5")
QUICK_NETS: Final = ("w1-5", "w1-ff-5", "logged-h2-a5")
WORDS: Final = {True: "of spikes", False: "of all values"}


def count_energy(name: str) -> dict[str, Any]:
    """Count the products of a training step, first for spikes only, then for all values, and the words moved to and from main memory."""
    problem = matched_problem(name)
    program, steps, batch = problem.program, problem.options.steps or 1, problem.options.batch or 1
    activity = measure_activity(program, problem.inputs, name).mean
    found: dict[str, Any] = {"net": name, "moved_words": moved_words(program, steps, batch)}
    for events, words in WORDS.items():
        work = synaptic_work(program, activity, steps, batch, events=events)
        found |= {f"accumulates {words}": work.accumulates, f"multiplications {words}": work.multiplications}
    return found


def counts_of(row: Mapping[str, Any], *, events: bool) -> SynapticWork:
    """Return the counts of a row of :func:`count_energy`."""
    return SynapticWork(row[f"accumulates {WORDS[events]}"], row[f"multiplications {WORDS[events]}"])
