"""The files of the corpus on the processor: spikes equal those of the reference, values within rounding."""

import numpy as np
import pytest
import test_nir_corpus
import test_onnx_corpus
from cpu_projects import opened
from wide import sampled

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.session import Session
from snnc.compiler.lower import lower
from snnc.frontends.load import load

ONNX = [n for n in test_onnx_corpus.GOOD if n != "bad_snn_tanh_dyn"]


def compare(program, runs):
    with opened(program) as engine:
        session, reference = Session(engine, program), Session(ReferenceEngine(program), program)
        for feeds, states in runs:
            found, wanted = session.run(feeds, states), reference.run(feeds, states)
            assert found.keys() == wanted.keys()
            for name, value in wanted.items():
                test_onnx_corpus.check(found[name], value)


@pytest.mark.parametrize("name", sampled(ONNX, 3))
def test_onnx_files_give_the_outputs_of_the_reference(name):
    graph, z = load(test_onnx_corpus.path_of(name)), np.load(test_onnx_corpus.CORPUS / f"{name}.npz")
    runs = []
    for prefix in ("", "alt_"):
        feeds = {k[len(prefix) + 3 :]: z[k] for k in z.files if k.startswith(prefix + "in_")}
        states = {k[5:]: z[k] for k in z.files if k.startswith("init_")} if not prefix else {}
        if feeds:
            known = {i: a for i, a in feeds.items() if i in graph.nx}
            runs.append((known, states | {i: a for i, a in feeds.items() if i in graph.state_inputs}))
    compare(lower(graph), runs)


@pytest.mark.parametrize("name", sampled(test_nir_corpus.GOOD, 3))
def test_nir_files_give_the_outputs_of_the_reference(name):
    case = test_nir_corpus.CASES[name]
    graph = load(test_nir_corpus.path_of(name), dt=case["dt"], dialect=test_nir_corpus.dialect_of(name))
    program = lower(graph)
    x, _ = test_nir_corpus.stored(name)
    compare(program, [({program.inputs[0].label: x}, {})])
