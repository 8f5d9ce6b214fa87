"""The files of the corpus on the CPU: spikes equal those of the reference, values agree within rounding."""

import numpy as np
import pytest
import test_nir_corpus
import test_onnx_corpus
from corpus_programs import ALWAYS, ONNX, compare, onnx_runs
from cpu_projects import opened

from snnc.compiler.lowering.lower import lower
from snnc.frontends.load import load


def kinds_first(names):
    return [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.wide) for name in names]


def test_the_files_that_always_run_are_of_the_corpus():
    assert set(ALWAYS) <= {*ONNX, *test_nir_corpus.GOOD}


@pytest.mark.parametrize("name", kinds_first(ONNX))
def test_onnx_files_give_the_outputs_of_the_reference(name):
    graph, z = load(test_onnx_corpus.path_of(name)), np.load(test_onnx_corpus.CORPUS / f"{name}.npz")
    compare(lower(graph), onnx_runs(graph, z), opened)


@pytest.mark.parametrize("name", kinds_first(test_nir_corpus.GOOD))
def test_nir_files_give_the_outputs_of_the_reference(name):
    case = test_nir_corpus.CASES[name]
    graph = load(test_nir_corpus.path_of(name), dt=case["dt"], dialect=test_nir_corpus.dialect_of(name))
    program = lower(graph)
    x, _ = test_nir_corpus.stored(name)
    compare(program, [({program.inputs[0].label: x}, {})], opened)
