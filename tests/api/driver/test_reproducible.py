"""A seed fixes the initial weights, the order of samples and every byte of the emitted program, for any library or hash seed."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from nets import dense

from snnc.backends.training.data.batches import ArrayBatches, EpochOrders
from snnc.backends.training.plan import BatchSchedule
from snnc.compiler.ir.arrays.randomness import Stream
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.driver.compiling import compile_to_folder
from snnc.frontends.dsl import initialisers
from snnc.frontends.dsl.initialisers import Fans
from snnc.options.compile_options import CompileOptions

ORDERS = [[6, 7, 2, 1], [4, 5, 3, 0], [6, 0, 4, 1], [5, 2, 3, 7]]
INITIAL = {
    "FanIn": [0.55117387, 0.080805406, 0.4255483],
    "Uniform": [0.7794776, 0.1142761, 0.6018162],
    "Normal": [0.14167945, 0.966396, 0.7640472],
    "TruncatedNormal": [1.1359229, 0.13713576, 0.796801],
    "LogNormal": [1.1522073, 2.6284542, 2.1469479],
    "XavierUniform": [0.8538749, 0.1251832, 0.6592566],
    "XavierNormal": [0.08960596, 0.6112025, 0.48322588],
    "KaimingUniform": [1.3500948, 0.197932, 1.0423762],
    "KaimingNormal": [0.14167945, 0.966396, 0.7640472],
    "Orthogonal": [0.16510296, 0.5710994, 0.89036524],
}
BACKWARD = [
    "k0 = s1_prev - 3 * s0_prev",
    "k1 = a0 * s0_prev + i0 / (1 + 25 * s1_prev * s1_prev) + 0.25 * (k0 * k0)",
    "k2 = sigmoid(k1)",
    "k3 = k1 - 1 - a2 * s1",
    "o0 = spike(k3)",
    "r0 = d_o0 - d_s0 * k1",
    "r1 = 25 * abs(k3) + 1",
    "r2 = r0 / (r1 * r1)",
    "r3 = d_s1 - a2 * r2",
    "r4 = r3 * (1 - a1)",
    "r5 = d_s0 * (1 - o0) + r2 + r4 * k2 * (1 - k2)",
    "r6 = 0.5 * r5 * k0",
    "d_s0_prev = a0 * r5 - 3 * r6",
    "r7 = 25 * s1_prev * s1_prev + 1",
    "d_s1_prev = a1 * r3 + r6 - 50 * r5 * i0 * s1_prev / (r7 * r7)",
    "d_i0 = r5 / r7",
    "d_a0 = r5 * s0_prev",
    "d_a2 = -(r2 * s1)",
]


@pytest.mark.wide
def test_projects_are_the_same_byte_for_byte_whatever_the_hashes_of_texts_are(tmp_path, root):
    place, printed = [sys.executable, str(root / "tests" / "api" / "driver" / "reproducible_nets.py")], []
    for seed in ("1", "2"):
        surroundings = os.environ | {"PYTHONHASHSEED": seed, "SNNC_CACHE": str(tmp_path / seed)}
        done = subprocess.run(place, env=surroundings, capture_output=True, text=True, timeout=120, check=True)
        printed.append([json.loads(line) for line in done.stdout.splitlines()])
    assert len(printed[0]) == 6
    assert printed[0] == printed[1]


class Unread:
    def batch_of(self, data, chosen):
        return {}


def test_the_order_of_samples_is_pinned():
    plan = BatchSchedule(epochs=2, batch=4, full_batches_only=True, shuffle=True, seed=3)
    data = ArrayBatches(Unread(), EpochOrders(plan, 8), {}, np.arange(8))

    def orders(epoch, done):
        return [batch.samples_at(np.arange(batch.count))[1].tolist() for batch in data.remaining(epoch, done, "")[1]]

    assert orders(0, 0) + orders(1, 0) == ORDERS
    assert orders(1, 1) == ORDERS[3:]


@pytest.mark.parametrize("name", INITIAL)
def test_initial_weights_are_pinned(name):
    drawn = getattr(initialisers, name)().draw((3, 2), Fans(2, 3), Stream([0, 1]))
    np.testing.assert_array_equal(drawn.reshape(-1)[:3], np.array(INITIAL[name], np.float32))


EQUATIONS = """
    u = beta*v + i/(1 + 25*w*w) + 0.25*(w - 3*v)**2
    w = rho*w + (1 - rho)*sigmoid(u)
    s = spike(u - 1 - kappa*w)
    v = u*(1 - s)
"""


def test_an_adjoint_is_the_same_text_for_every_version_of_sympy():
    model = neuron("pinned", states={"v": 0, "w": 0}, params={"beta": 0.9, "rho": 0.97, "kappa": 1.8}, equations=EQUATIONS)
    kernel = derive_kernel(model, parse_surrogate("fast_sigmoid:25"), ("beta", "kappa"))
    assert [str(line) for line in kernel.backward] == BACKWARD


def test_an_emitted_program_calls_no_function_whose_last_bit_differs_between_libraries(tmp_path):
    """Of ``expf`` and ``logf`` all versions of the GNU library return the same numbers; ``expm1f`` and ``tanhf`` changed with 2.41."""
    options = {"loss": parse_loss("ce_count"), "optimizer": Adam(1e-3), "steps": 5, "batch": 2}
    compile_to_folder(dense(np.random.default_rng(0)), CompileOptions(target="gc200", **options), tmp_path / "project")
    text = "\n".join(path.read_text() for path in (tmp_path / "project").rglob("*.[ch]pp"))
    found = set(re.findall(r"\b(?:exp2?|expm1|log2?|log1p|pow|tanh|erf|sin|cos)f?(?=\()", text))
    assert found == {"expf", "logf"}
