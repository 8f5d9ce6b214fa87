"""Convolutions and connections by tables over all rows at once, as CUDA kernels on the CPU, compared with float64 sums."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from cuda_checks import built_check

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A geometry; axes of a pair are y and x."""

    rows: int
    channels: int
    outputs: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    before: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    after: tuple[int, int] = (0, 0)

    def arguments(self, *, spikes):
        output = [
            (n + b + a - d * (k - 1) - 1) // s + 1
            for n, b, a, d, k, s in zip(self.size, self.before, self.after, self.dilation, self.kernel, self.stride, strict=True)
        ]
        pairs = (*self.size, *self.kernel, *self.stride, *self.before, *self.dilation, *output)
        return [str(n) for n in (self.rows, int(spikes), self.channels, self.outputs, self.groups, *pairs)]


CASES = {
    "two channels": Case(2, 2, 12, (17, 13), (5, 5)),
    "twelve channels": Case(3, 12, 32, (9, 8), (5, 5)),
    "padding": Case(5, 17, 9, (6, 7), (3, 3), before=(1, 1), after=(1, 1)),
    "padding on one side": Case(2, 3, 5, (6, 7), (3, 2), before=(2, 0), after=(0, 1)),
    "stride": Case(3, 5, 20, (11, 9), (3, 3), stride=(2, 2), before=(1, 1), after=(1, 1)),
    "stride and dilation": Case(2, 16, 6, (13, 14), (3, 2), stride=(3, 2), dilation=(2, 3), before=(1, 2)),
    "groups": Case(4, 12, 6, (5, 5), (3, 3), groups=3),
    "depthwise": Case(3, 6, 6, (7, 7), (3, 3), groups=6, before=(1, 1), after=(1, 1)),
    "one axis": Case(3, 2, 7, (1, 70), (1, 9), stride=(1, 2), before=(0, 4)),
    "a long axis": Case(2, 1, 3, (1, 700), (1, 40)),
    "many rows of little": Case(24, 33, 70, (2, 2), (2, 2)),
    "a point": Case(9, 20, 130, (1, 1), (1, 1)),
}


@pytest.fixture(scope="module")
def convolutions(tmp_path_factory):
    return built_check(tmp_path_factory.mktemp("convolutions") / "check", [HERE / "whole_convolutions_check.cpp"])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return built_check(tmp_path_factory.mktemp("tables") / "check", [HERE / "whole_tables_check.cpp"], ["-O0"])


def differences(program, arguments):
    said = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    return {name: float(number) for name, number in (line.split() for line in said.splitlines())}


@pytest.mark.representative(
    "*-forwards-*", "spikes-backwards-two channels", "numbers-backwards-stride and dilation", "*-backwards-depthwise"
)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize("spikes", [True, False], ids=["spikes", "numbers"])
def test_convolutions_of_many_rows_are_those_of_the_definition(convolutions, name, order, spikes, monkeypatch):
    monkeypatch.setenv("SNNC_HOST_ORDER", order)
    found = differences(convolutions, CASES[name].arguments(spikes=spikes))
    assert len(found) == 8
    # Deltas are split in two numbers of 16 bits of the backward products, which leaves 16 to 17 bits of each.
    limits = {"forward": 5e-7, "forward_added": 5e-7, "bias_alone": 1e-6} | (
        {} if spikes else {"gradient": 1e-6, "gradient_alone": 1e-6, "bias": 1e-6}
    )
    for what, difference in found.items():
        assert difference < limits.get(what, 1e-5), what


@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize("spikes", [True, False], ids=["spikes", "numbers"])
@pytest.mark.parametrize(("rows", "sources", "targets", "entries", "weights"), [(7, 70, 33, 200, 40), (1, 5, 3, 9, 1), (300, 9, 4, 12, 2)])
def test_connections_by_tables_of_many_rows_are_those_of_the_definition(
    tables, rows, sources, targets, entries, weights, spikes, order, monkeypatch
):
    monkeypatch.setenv("SNNC_HOST_ORDER", order)
    found = differences(tables, [str(n) for n in (rows, sources, targets, entries, weights, int(spikes))])
    assert len(found) == 14
    assert max(found.values()) < 1e-6
