"""The precision tf32: weights of forward products of spikes have 11 bits, everything else is float32."""

import numpy as np
import pytest
from cpu_projects import assert_same_records, data
from cuda_projects import opened, program_of

import snnc
from snnc.backends.cuda.network import launches_of
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.step_operations import DenseProduct
from snnc.errors import OptionTargetError

STEPS, BATCH = 9, 4


def tf32(values):
    """Round to the nearest number with 11 significant bits, ties to even."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.rint(mantissa * 2**11), exponent - 11).astype(np.float32)


def rounded_weights(program):
    """Return the dense weights that spikes select outside a recurrence."""
    products = [op for op in program.forward if isinstance(op, DenseProduct)]
    return {op.weight for op in products if program.buffers[op.source.buffer].kind == "spikes" and op.source.delay == 0}


def test_a_forward_pass_is_that_of_the_reference_with_rounded_weights():
    program = program_of("recurrent")
    named = rounded_weights(program)
    assert named
    inputs, _ = data(program, STEPS, BATCH)
    reference = ReferenceEngine(program)
    values = reference.get_parameters()
    exact = reference.forward(inputs, {})
    reference.set_parameters({name: tf32(value) if name in named else value for name, value in values.items()})
    wanted = reference.forward(inputs, {})
    with opened(program, precision="tf32") as engine:
        found = engine.forward(inputs, {})
    assert_same_records(found, wanted)
    name = next(iter(wanted))
    assert np.abs(found[name] - wanted[name]).max() < 0.1 * np.abs(exact[name] - wanted[name]).max()


def test_products_of_spikes_take_half_the_work():
    program = program_of("recurrent")
    parts = {
        precision: [one.parts for one in launches_of(program, precision) if one.kind == "product" and one.way == "forward"]
        for precision in ("float32", "tf32")
    }
    assert sum(parts["tf32"]) < sum(parts["float32"])
    assert all(tf32 in (exact, exact // 2) for exact, tf32 in zip(parts["float32"], parts["tf32"], strict=True))


def test_other_targets_refuse_it():
    net = snnc.Sequential(5, snnc.Dense(3), snnc.LIF())
    with pytest.raises(OptionTargetError, match=r"precision = 'tf32' is for the targets? cuda"):
        snnc.compile(net, target="cpu", precision="tf32")
