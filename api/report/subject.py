"""Input of a report: a plan with its program, profile and recording, and cached values derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from snnc.compiler.ir.plan import Plan
from snnc.compiler.tiles.exchange.layer_traffic import StepTraffic, measure_traffic
from snnc.compiler.tiles.exchange.places import LayerPlaces, locate
from snnc.project.compiled import Compiled
from snnc.report.limits import Limit, find_limits
from snnc.report.profile import Emulation, read_profile
from snnc.report.recording import Recording, in_parts
from snnc.report.summary import summarise


@dataclass(frozen=True, eq=False)
class Subject:
    """Input of a report: a plan and, if known, its network and runs.

    `program` is the summary of the step program by :func:`snnc.report.summarise`, empty if only the plan is available; `profile` is the
    emulator's profile, and `recording` the spikes of a run.
    """

    plan: Plan
    program: Mapping[str, Any]
    profile: Mapping[str, Any] | None = None
    recording: Recording | None = None

    @cached_property
    def places(self) -> LayerPlaces:
        """Tiles of each layer."""
        return locate(self.plan)

    @cached_property
    def traffic(self) -> StepTraffic:
        """Bytes moved in a training step or forward pass, as stored in the plan; for older plans, computed from the placement."""
        if self.plan.traffic is not None:
            return StepTraffic.of(self.plan.traffic)
        return measure_traffic(self.plan, self.places, self.program)

    @cached_property
    def names(self) -> dict[str, str]:
        """The author's names of inputs and layers, by id."""
        return {i["id"]: i["label"] for i in self.program.get("inputs", [])} | {p.id: p.label for p in self.plan.populations}

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """Bottlenecks of the network on its machine."""
        return find_limits(self.plan, self.places, self.traffic, self.names)

    @cached_property
    def emulation(self) -> Emulation | None:
        """The emulator's counts for one step; None without a profile."""
        return read_profile(self.plan, self.profile)


def subject_of(compiled: Compiled, profile: Mapping[str, Any] | None = None, recording: Recording | None = None) -> Subject:
    """Return the input of the report of a compiled network with a plan; recorded spikes are assigned to the populations of the plan."""
    assert compiled.plan is not None, "the target has tiles"
    if recording is not None and compiled.parts is not None:
        recording = in_parts(recording, compiled.parts.correspondence)
    return Subject(compiled.plan, summarise(compiled.placed), profile, recording)
