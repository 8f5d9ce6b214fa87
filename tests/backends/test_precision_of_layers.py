"""Every kind of layer in bfloat16 and float16 on cpu and cuda has an effect, or is refused with a code."""

from functools import partial

import numpy as np
import pytest
from indexed_nets import choosing, convolutional, pooled, shaping, sparse, sparse_recurrent
from nets import dense, join, of_model, recurrent

from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.cuda.emit import emit_cuda
from snnc.compiler.errors import NothingRoundedError
from snnc.compiler.ir.graph import Graph, Input, OneToOne, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import ALIF, LIF, SLSTM, CubaLIF


def alone(make, random, kind="values"):
    """One connection of a kind into spiking neurons."""
    graph = Graph("alone")
    graph.add("x", Input((6,), kind))
    graph.add("hidden", Population(LIF(0.9), (6,)))
    join(graph, "first", make(random), "x", "hidden")
    graph.add("y", Output())
    graph.connect("hidden", "y")
    return graph


def weights_of_each(random):
    return OneToOne(random.normal(size=6).astype(np.float32), learnable=True)


NETS = {
    "dense": dense,
    "dense, spikes": partial(dense, kind="spikes"),
    "sparse": partial(alone, lambda random: sparse(random, 6, 6, 0.5)),
    "sparse, spikes": partial(alone, lambda random: sparse(random, 6, 6, 0.5), kind="spikes"),
    "one to one": partial(alone, weights_of_each),
    "recurrent": recurrent,
    "sparse, recurrent": sparse_recurrent,
    "convolutions": convolutional,
    "pooling": pooled,
    "shapes": shaping,
    "maxima": choosing,
    "moving threshold": lambda random: of_model(random, ALIF(0.9, 0.8)),
    "lstm": lambda random: of_model(random, SLSTM(threshold=0.1)),
    "synaptic": lambda random: of_model(random, CubaLIF(0.7, 0.9)),
}
EMIT = {"cpu": emit_cpu, "cuda": emit_cuda}
REFUSED = {("moving threshold", "cpu", "float16")}
"""The whole past decides something, and on the CPU float16 rounds the past alone."""


def sources(folder):
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.suffix in (".cpp", ".hpp", ".cu", ".cuh")}


@pytest.mark.representative(
    *("dense-*", "one to one-cuda", "sparse, recurrent-cuda", "convolutions-cpu", "pooling-cuda", "shapes-cuda", "maxima-*"),
    *("moving threshold-cpu", "lstm-cuda"),
)
@pytest.mark.parametrize("target", EMIT)
@pytest.mark.parametrize("name", NETS)
def test_training_in_16_bits_changes_the_program_or_is_refused(tmp_path, name, target):
    graph = NETS[name](np.random.default_rng(3))
    program = lower(graph, loss=parse_loss("ce_count"), loss_output="y", optimizer=SGD(0.1))
    plain = sources(EMIT[target](program, tmp_path / "float32"))
    for precision in ("bfloat16", "float16"):
        if (name, target, precision) in REFUSED:
            with pytest.raises(NothingRoundedError):
                EMIT[target](program, tmp_path / precision, precision=precision)
        else:
            assert sources(EMIT[target](program, tmp_path / precision, precision=precision)) != plain
