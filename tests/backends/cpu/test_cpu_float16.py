"""Histories in float16 on the CPU: numbers equal a reference with float16 histories, conversions equal NumPy's."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpu_projects import assert_same_records, data, opened
from indexed_nets import convolutional
from nets import learnable, of_model, recurrent

import snnc
from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.cpu.network import network_context
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.toolchain.compilers import compiler
from snnc.compiler.errors import NothingRoundedError
from snnc.compiler.ir.graph import Graph, Input, OneToOne, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import ALIF, LIF, SLSTM
from snnc.errors import OptionNeedsLossError

RUNTIME = Path(__file__).parents[3] / "templates" / "cpu" / "runtime"
CHECK = """
#include "float16.hpp"
#include <cstdio>
#include <vector>
int main() {
  std::vector<float> numbers(1 << 16);
  for (unsigned n = 0; n < numbers.size(); ++n)
    numbers[n] = snnc::float_of(static_cast<snnc::Float16>(n));
  std::fwrite(numbers.data(), 4, numbers.size(), stdout);
  std::vector<float> given(1 << 20);
  given.resize(std::fread(given.data(), 4, given.size(), stdin));
  for (float value : given) {
    const snnc::Float16 half = snnc::half_of(value);
    std::fwrite(&half, 2, 1, stdout);
  }
}
"""


def test_conversions_are_to_the_nearest_with_ties_to_even(tmp_path):
    (tmp_path / "check.cpp").write_text(CHECK)
    command = [*compiler(), "-std=c++17", "-O3", f"-I{RUNTIME}", str(tmp_path / "check.cpp"), "-o", str(tmp_path / "check")]
    subprocess.run(command, check=True, capture_output=True)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)].astype(np.float32)
    random = np.random.default_rng(1)
    drawn = (random.normal(size=200_000) * 2.0 ** random.integers(-30, 18, 200_000)).astype(np.float32)
    ties = (np.sort(finite)[1:] + np.sort(finite)[:-1]) / 2
    given = np.concatenate(
        [finite, drawn, ties, np.nextafter(ties, np.float32(0)), [np.inf, -np.inf, np.nan, 1e30, 1e-40, 65519.0, 65520.0]]
    )
    given = given.astype(np.float32)
    said = subprocess.run([tmp_path / "check"], input=given.tobytes(), check=True, capture_output=True).stdout
    np.testing.assert_array_equal(np.frombuffer(said[: 4 << 16], np.float32), every.astype(np.float32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.frombuffer(said[4 << 16 :], np.float16), given.astype(np.float16))


def gated(random):
    return of_model(random, SLSTM(0.1))


def program_of(make, half=()):
    output = {"loss_output": "y"} if make in (recurrent, learnable) else {}
    return lower(make(np.random.default_rng(3)), loss=parse_loss("ce_max_membrane"), optimizer=SGD(1e-2), half=half, **output)


@pytest.mark.representative("convolutional")
@pytest.mark.parametrize("make", [recurrent, learnable, convolutional, pytest.param(gated, marks=pytest.mark.wide)])
def test_training_steps_are_those_of_the_reference_that_rounds_alike(make):
    program = program_of(make)
    inputs, labels = data(program, 9, 11)
    reference, exact = ReferenceEngine(program_of(make, ("history",))), ReferenceEngine(program)
    loss = reference.train_batch(inputs, labels, 0.0)
    exact.train_batch(inputs, labels, 0.0)
    with opened(program, precision="float16") as engine:
        assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=1e-5)
        found = engine.gradients()
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
    whole = np.sqrt(sum(float(np.square(g).sum()) for g in reference.gradients().values()))

    def error(engine):
        gradients = engine.gradients()
        return max(np.linalg.norm(found[n] - g) / max(np.linalg.norm(g), 0.05 * whole) for n, g in gradients.items())

    # A state within rounding of a tie may round either way: one part in 2^11 of a slope.
    assert error(reference) < 1e-5 < error(exact) < 2.0**-9


def test_histories_take_half_the_memory():
    program = program_of(recurrent)
    sizes = {"steps": 1, "batch": 1}
    found = {p: network_context(SequenceStorage(program, precision=p), {}, sizes)[2].rows["segment"] for p in ("float32", "float16")}
    assert found["float16"] == found["float32"] / 2


def test_a_program_that_only_runs_has_no_history():
    with pytest.raises(OptionNeedsLossError, match="precision"):
        snnc.compile(recurrent(np.random.default_rng(3)), target="cpu", precision="float16")


def test_a_past_in_which_nothing_can_be_rounded_is_refused(tmp_path):
    moving = of_model(np.random.default_rng(3), ALIF(0.9, 0.8))
    with pytest.raises(NothingRoundedError, match="no population"):
        emit_cpu(lower(moving, loss=parse_loss("ce_count"), loss_output="hidden", optimizer=SGD(1e-2)), tmp_path, precision="float16")


@pytest.mark.parametrize(("emit", "precision"), [(emit_cpu, "bfloat16"), (emit_cuda, "float16")])
def test_a_program_that_does_not_train_and_has_no_dense_connection_is_refused(tmp_path, emit, precision):
    graph = Graph("each")
    graph.add("x", Input((6,)))
    graph.add("gain", OneToOne(np.full(6, 0.5, np.float32)))
    graph.add("cells", Population(LIF(0.9), (6,)))
    graph.add("y", Output())
    for source, target in (("x", "gain"), ("gain", "cells"), ("cells", "y")):
        graph.connect(source, target)
    with pytest.raises(NothingRoundedError, match="no dense connection"):
        emit(lower(graph), tmp_path / "project", precision=precision)
