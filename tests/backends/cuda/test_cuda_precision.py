"""Backward products with bfloat16 factors: those of the reference whose factors are rounded alike."""

import subprocess

import numpy as np
import pytest
from bfloat16 import rounded
from cpu_projects import assert_same_records, data
from cuda_projects import opened, program_of
from hypothesis import given
from hypothesis import strategies as st
from nets import dense

from snnc.backends.cuda.build import build_cuda, nvcc, resources
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.errors import NvccMissingError
from snnc.backends.reference import backward
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.optimizers import SGD
from snnc.compiler.step_operations import DenseInputGradient


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
def test_the_rounding_of_the_oracle_is_to_the_nearest(x):
    found = float(rounded(np.array([x]))[0])
    bits = int(np.array([found], np.float32).view(np.uint32)[0])
    near = [float(np.array([b], np.uint32).view(np.float32)[0]) for b in (bits - 0x10000 & 0xFFFFFFFF, bits + 0x10000 & 0xFFFFFFFF)]
    assert abs(found - x) <= min(abs(other - x) for other in near if np.isfinite(other))


@pytest.fixture
def rounding_reference():
    """The reference with rounded factors where something comes back through a dense weight."""

    def dense_input(op, memory, t):
        if t >= op.source.delay:
            backward._add_to_source(memory, op.source, t, rounded(memory[f"d_{op.target}"]) @ rounded(memory[op.weight]))

    usual = backward.run_backward.dispatch(DenseInputGradient)
    backward.run_backward.register(DenseInputGradient, dense_input)
    yield
    backward.run_backward.register(DenseInputGradient, usual)


def wide():
    """A readout wider than a fragment is deep, behind more neurons than a warp has lanes; neither a multiple."""
    return lower(dense(np.random.default_rng(3), 41, 37, kind="spikes"), loss=parse_loss("ce_rate"), optimizer=SGD(1e-2))


@pytest.mark.parametrize("name", ["wide", "recurrent", pytest.param("delayed", marks=pytest.mark.wide)])
def test_gradients_are_those_of_rounded_factors(name, rounding_reference):
    program = wide() if name == "wide" else program_of(name)
    inputs, labels = data(program, 9, 11)
    reference = ReferenceEngine(program)
    loss = reference.train_batch(inputs, labels, 0.0)
    found = []
    for sharing in ((1, 8), (2, 1), (4, 8)):
        with opened(program, *sharing, precision="bfloat16") as engine:
            assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=1e-5)
            found.append(engine.gradients())
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
    for parameter, gradient in reference.gradients().items():
        # A delta within rounding of a tie may round either way: one of 256 parts of it.
        error = np.linalg.norm(found[0][parameter] - gradient)
        assert error <= 3e-4 * np.linalg.norm(gradient), (parameter, error / np.linalg.norm(gradient))
        for other in found[1:]:
            np.testing.assert_array_equal(other[parameter], found[0][parameter])


def test_rounding_is_seen_and_small():
    program = program_of("recurrent")
    inputs, labels = data(program, 9, 11)
    reference = ReferenceEngine(program)
    reference.train_batch(inputs, labels, 0.0)
    with opened(program, 1, 8, precision="bfloat16") as engine:
        engine.train_batch(inputs, labels, 0.0)
        found = engine.gradients()
    errors = [np.linalg.norm(found[n] - g) / np.linalg.norm(g) for n, g in reference.gradients().items() if np.linalg.norm(g) > 0]
    assert 1e-4 < max(errors) < 2e-2


@pytest.mark.wide
def test_nvcc_makes_tensor_core_instructions_of_the_products(tmp_path):
    try:
        nvcc()
    except NvccMissingError as error:
        pytest.skip(str(error))
    folder = emit_cuda(wide(), tmp_path / "project", precision="bfloat16")
    for architecture, count in (("sm_90", True), ("sm_75", False)):
        command = [*nvcc(), "-std=c++17", f"-arch={architecture}", "-ptx", str(folder / "network.cu"), "-o", str(tmp_path / "network.ptx")]
        subprocess.run(command, check=True)
        assert ("mma.sync.aligned.m16n8k16" in (tmp_path / "network.ptx").read_text()) is count
    kernels = resources(build_cuda(folder, "sm_90"))
    assert [k.name for k in kernels if k.spill_stores or k.spill_loads] == []
