"""Report of a conversion, with its measured loss of accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class ReluLayer:
    """One ReLU layer: its name in the network, its node in the file, its size and its measurements."""

    name: str
    origin: str  # node in the file
    neurons: int  # number of neurons
    threshold: float  # activation that becomes a firing rate of 1, by which weights are divided
    rate: float  # measured spikes per neuron and step


@dataclass(frozen=True)
class AccuracyPoint:
    """Accuracy of the spiking network after a number of steps."""

    steps: int  # number of steps
    accuracy: float | None  # share of samples whose largest output is at their label; None without labels
    agreement: float | None  # share of samples with the same largest output in both networks; None for a single output value
    error: float  # mean over the samples of ``|snn - ann| / |ann|`` (Euclidean norms of the output)
    error_95: float  # 95th percentile of the same quotient


@dataclass(frozen=True)
class Report:
    """Measurements of a conversion, made in float64."""

    output: str  # name of the measured output
    percentile: float  # percentile of a layer's positive activations that becomes its threshold
    balanced_on: tuple[int, str]  # number and description of the samples for balancing
    measured_on: tuple[int, str]  # the same for measuring
    source: str  # description of the sample data
    accuracy: float | None  # accuracy of the ReLU network; None without labels
    layers: tuple[ReluLayer, ...]  # measurements of the layers, in file order
    points: tuple[AccuracyPoint, ...]  # accuracy after increasing numbers of steps, up to all steps

    @property
    def loss(self) -> float | None:
        """Accuracy lost by the conversion, as a share of the samples; None without labels."""
        last = self.points[-1].accuracy
        return None if self.accuracy is None or last is None else self.accuracy - last

    def sentences(self) -> Iterator[str]:
        """Yield the report as sentences."""
        balanced, measured = (f"{count} ({described})" for count, described in (self.balanced_on, self.measured_on))
        caveat = ": the same samples, so the numbers below are optimistic" if balanced == measured else ""
        yield (
            f"Of {self.source}, {balanced} were used to balance the thresholds, at the {self.percentile:g}th percentile of positive "
            f"activations, and {measured} to measure the results{caveat}."
        )
        last = self.points[-1]
        if self.accuracy is not None and last.accuracy is not None and self.loss is not None:
            yield (
                f"Measured accuracy of '{self.output}': {_percent(self.accuracy)} of the ReLU network, {_percent(last.accuracy)} of the "
                f"spiking one at {last.steps} steps; loss {100 * self.loss:.2f} points."
            )
        yield from (f"Measured at {p.steps} steps: {self._point(p)}." for p in self.points)
        for layer in self.layers:
            yield (
                f"Layer {layer.name} ({layer.origin}): {layer.neurons:,} neurons, threshold {layer.threshold:.4g}, measured "
                f"{layer.rate:.3g} spikes per neuron and step."
            )

    def _point(self, p: AccuracyPoint) -> str:
        parts = [] if p.accuracy is None else [f"accuracy {_percent(p.accuracy)}"]
        parts += [] if p.agreement is None else [f"same largest output in {_percent(p.agreement)} of the samples"]
        return ", ".join([*parts, f"error {_percent(p.error)} of the output (95th percentile {_percent(p.error_95)})"])


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
