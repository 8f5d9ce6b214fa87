"""Dense products with 16-bit factors, and 16-bit deltas and histories: equal to the reference with the same rounding.

bfloat16 is for backward products and deltas only.
"""

import re
import subprocess

import numpy as np
import pytest
from bfloat16 import rounded as rounded_to_bfloat16
from cpu_projects import data
from cuda_projects import CASES, opened, program_of
from hypothesis import given
from hypothesis import strategies as st
from nets import dense

from snnc.backends.cuda.build import build_cuda, nvcc, resources
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.errors import NvccMissingError
from snnc.backends.reference import engine as engine_module
from snnc.backends.reference import forward
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.step_operations import DenseInputGradient, DenseProduct, NeuronAdjoint
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.surrogates.library import parse_surrogate

HALVES = ("bfloat16", "float16")


def rounded(x, precision):
    """The nearest number of 16 bits of each, ties to even; float16 is bounded."""
    if precision == "float16":
        return np.clip(x, -65504, 65504).astype(np.float16).astype(np.float32)
    return rounded_to_bfloat16(x)


def factors(x, precision):
    """Rounded factors [B, n] of a network's own kernels; in float16 sixteen of a sample have a power of two of their own."""
    if precision == "bfloat16":
        return rounded(x, precision)
    padded = np.pad(x, ((0, 0), (0, -x.shape[1] % 16))).reshape(len(x), -1, 16)
    largest = np.abs(padded).max(axis=2, keepdims=True)
    scale = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1), dtype=np.float64)))
    return (rounded(padded / scale, precision) * scale).astype(np.float32).reshape(len(x), -1)[:, : x.shape[1]]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
def test_the_rounding_of_the_oracle_is_to_the_nearest(x):
    found = float(rounded(np.array([x]), "bfloat16")[0])
    bits = int(np.array([found], np.float32).view(np.uint32)[0])
    near = [float(np.array([b], np.uint32).view(np.float32)[0]) for b in (bits - 0x10000 & 0xFFFFFFFF, bits + 0x10000 & 0xFFFFFFFF)]
    assert abs(found - x) <= min(abs(other - x) for other in near if np.isfinite(other))


@pytest.fixture
def rounding_reference(monkeypatch):
    """A function of a precision: from there on the reference rounds what that rounds.

    Products over whole sequences keep 16 bits of numbers (`whole`), where a network's own kernels keep 11.
    """
    usual_forward, usual_backward = forward.run_forward, engine_module.run_backward
    run = ReferenceEngine.run_sequence

    def rounds(precision, whole=False):
        def rounded_forward(op, memory, t):
            if not isinstance(op, DenseProduct):
                return usual_forward(op, memory, t)
            source = memory.read(op.source, t)
            memory[op.target][:] += (source if whole else factors(source, precision)) @ rounded(memory[op.weight], precision).T

        def rounded_backward(op, memory, t):
            if not isinstance(op, DenseInputGradient):
                usual_backward(op, memory, t)
            elif t >= op.source.delay:
                adjoint = factors(memory[f"d_{op.target}"], precision) @ rounded(memory[op.weight], precision)
                memory[f"d_{op.source.buffer}"][t - op.source.delay] += adjoint
            for current in op.currents if isinstance(op, NeuronAdjoint) else ():
                memory[f"d_{current}"][:] = rounded(memory[f"d_{current}"], "bfloat16")

        def with_rounded_past(engine, inputs, initial):
            memory = run(engine, inputs, initial)
            for op in engine.program.backward:
                if isinstance(op, NeuronAdjoint):
                    kernel = next(p.kernel for p in engine.program.populations if p.id == op.population)
                    kept = [name for state, name in zip(kernel.states, op.states, strict=True) if state in kernel.history]
                    for name in (*kept, *op.saved):
                        memory[name][:] = rounded(memory[name], precision)
            return memory

        monkeypatch.setattr(engine_module, "run_backward", rounded_backward)
        if precision == "float16":
            monkeypatch.setattr(forward, "run_forward", rounded_forward)
            monkeypatch.setattr(ReferenceEngine, "run_sequence", with_rounded_past)

    return rounds


def wide(readout=None):
    """A readout wider than a fragment is deep, behind more neurons than a warp has lanes; neither a multiple."""
    graph = dense(np.random.default_rng(3), 41, 37, 19, readout, kind="spikes")
    return lower(graph, loss=parse_loss("ce_rate"), optimizer=SGD(1e-2), surrogate=parse_surrogate("fast_sigmoid:25"))


def uneven(program):
    """Samples that fire often, which are read whole, beside others that fire seldom."""
    inputs, labels = data(program, 9, 11)
    for info in program.inputs:
        if info.kind == "spikes":
            inputs[info.id][:, ::2] *= np.random.default_rng(5).random(inputs[info.id][:, ::2].shape) < 0.15
    return inputs, labels


@pytest.mark.representative("recurrent-float16")
@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("name", ["wide", "recurrent", pytest.param("delayed", marks=pytest.mark.wide)])
def test_training_is_that_of_rounded_factors_and_a_rounded_past(name, precision, rounding_reference):
    program = wide() if name == "wide" else program_of(name)
    inputs, labels = uneven(program)
    rounding_reference(precision, whole=name == "delayed")
    reference = ReferenceEngine(program)
    loss, wanted = reference.train_batch(inputs, labels, 0.0), reference.forward(inputs, {})
    found = []
    for blocks, tile, segment in ((1, 8, 0), (2, 8, 0), (4, 1, 0), (2, 8, 4)):
        with opened(program, blocks, tile, precision=precision) as engine:
            engine.segment = segment
            assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=1e-5)
            found.append(engine.gradients())
            for output, record in engine.forward(inputs, {}).items():
                # Numbers within rounding of a tie may round either way.
                assert np.linalg.norm(record - wanted[output]) <= 3e-4 * np.linalg.norm(wanted[output])
    # A recurrence on chip keeps its weights in two parts of 8 bits where float16 has 11.
    most = 1e-3 if (name, precision) == ("recurrent", "float16") else 3e-4
    for parameter, gradient in reference.gradients().items():
        for other in found:
            error = np.linalg.norm(other[parameter] - gradient)
            assert error <= most * np.linalg.norm(gradient), (parameter, error / np.linalg.norm(gradient))
        # A tile of one sample reads no whole fragments, whose sums have an order of their own.
        for same in found[1 : 3 if precision == "bfloat16" else 2]:
            np.testing.assert_array_equal(same[parameter], found[0][parameter])


@pytest.mark.representative("float16")
@pytest.mark.parametrize("precision", HALVES)
def test_rounding_is_seen_and_small(precision):
    program = program_of("recurrent")
    inputs, labels = uneven(program)
    reference = ReferenceEngine(program)
    reference.train_batch(inputs, labels, 0.0)
    with opened(program, 1, 8, precision=precision) as engine:
        engine.train_batch(inputs, labels, 0.0)
        found = engine.gradients()
    errors = [np.linalg.norm(found[n] - g) / np.linalg.norm(g) for n, g in reference.gradients().items() if np.linalg.norm(g) > 0]
    assert 1e-5 < max(errors) < (1e-2 if precision == "bfloat16" else 4e-3)


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_network_takes_float16(name):
    program = program_of(name)
    inputs, labels = data(program)
    reference = ReferenceEngine(program)
    loss = reference.train_batch(inputs, labels, 0.0)
    wanted = reference.gradients()
    whole = np.sqrt(sum(float(np.square(g).sum()) for g in wanted.values()))
    with opened(program, 2, 8, precision="float16") as engine:
        for segment in (0, 4):
            engine.segment = segment
            assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(loss, rel=2e-3)
            for parameter, gradient in engine.gradients().items():
                assert np.linalg.norm(gradient - wanted[parameter]) <= 5e-3 * whole, parameter


def test_no_delta_is_too_small_for_float16(rounding_reference):
    """Below 3e-8 everything rounds to 0 in float16: without a scale nothing would come back."""
    program = wide(LIF(0.8, threshold=60.0))
    inputs, labels = uneven(program)
    rounding_reference("float16")
    reference = ReferenceEngine(program)
    reference.train_batch(inputs, labels, 0.0)
    with opened(program, 1, 8, precision="float16") as engine:
        engine.train_batch(inputs, labels, 0.0)
        found = engine.gradients()
    for parameter, gradient in reference.gradients().items():
        assert 0 < np.abs(gradient).max() < 1e-5
        assert np.linalg.norm(found[parameter] - gradient) <= 1e-3 * np.linalg.norm(gradient), parameter


@pytest.mark.wide
@pytest.mark.parametrize("precision", HALVES)
def test_nvcc_makes_tensor_core_instructions_of_the_products(precision, tmp_path):
    try:
        nvcc()
    except NvccMissingError as error:
        pytest.skip(str(error))
    folder = emit_cuda(wide(), tmp_path / "project", precision=precision)
    # Spikes are multiplied by weights of float16, deltas by those of bfloat16, which sm_75 has no tensor cores for.
    usual = ["m16n8k16.row.col.f32.bf16.bf16.f32", "m16n8k16.row.col.f32.f16.f16.f32"]
    own = {
        "sm_90a": (usual, ["m64n128k16.f32.bf16.bf16", "m64n128k16.f32.f16.f16"]),
        "sm_90": (usual, []),
        "sm_75": (["m16n8k8.row.col.f32.f16.f16.f32"], []),
    }
    for architecture, (products, of_groups) in own.items():
        command = [
            *nvcc(),
            "-std=c++17",
            f"-arch={architecture}",
            "-ptx",
            str(folder / "whole_products.cu"),
            "-o",
            str(tmp_path / "products.ptx"),
        ]
        subprocess.run(command, check=True, capture_output=True)
        said = (tmp_path / "products.ptx").read_text()
        assert sorted(set(re.findall(r"\bmma\.sync\.aligned\.(\S+)", said))) == products
        assert sorted(set(re.findall(r"wgmma\.mma_async\.sync\.aligned\.(\S+)", said))) == of_groups
    kernels = [k for k in resources(build_cuda(folder, "sm_90")) if "multiply" in k.name]
    assert len(kernels) > 10
    assert [k.name for k in kernels if k.spill_stores or k.spill_loads] == []
