"""Float16 numbers that differ by layer, in programs for the CPU and for a GPU with its kernels on the CPU: the reference's numbers."""

from functools import partial

import cpu_projects
import cuda_projects
import numpy as np
import pytest
from half_layers import chain, chosen
from half_projects import assert_same_as_the_reference

from snnc.backends.native.storage import SequenceStorage
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.halves import Halves
from snnc.compiler.lowering.lower import lower


@pytest.mark.parametrize("opened", [cpu_projects.opened, cuda_projects.opened], ids=["cpu", "cuda"])
def test_states_and_weights_equal_those_of_the_reference(opened):
    half = Halves(frozenset(["weights"]), {"second": frozenset(["states"]), "readout": frozenset(["states"]), "fc2": frozenset()})
    assert_same_as_the_reference(opened, partial(chain, port="v"), half, 1e-5)


def test_histories_of_the_chosen_layers_take_two_bytes_on_the_cpu():
    def stored(half):
        program = lower(chain(np.random.default_rng(3)), loss=parse_loss("ce_count"), optimizer=SGD(0.1))
        labels = {p.id: p.label for p in program.populations}
        return {labels[id_]: bool(names) for id_, names in SequenceStorage(program, precision="float16", half=half).rounded.items()}

    assert stored(None) == dict.fromkeys(("first", "second", "readout"), True)
    assert stored(chosen("history of one")) == {"first": True, "second": False, "readout": True}
    assert not any(stored(Halves()).values())
