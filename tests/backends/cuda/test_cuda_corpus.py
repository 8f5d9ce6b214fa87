"""The files of the corpus on the kernels of the CUDA program, run on the CPU: the outputs of the reference."""

import numpy as np
import pytest
import test_nir_corpus
import test_onnx_corpus
from corpus_programs import ONNX, compare, onnx_runs
from cuda_projects import opened

from snnc.compiler.lowering.lower import lower
from snnc.frontends.load import load

QUICK = "norse_lifrec_ts"


@pytest.mark.representative(QUICK)
@pytest.mark.parametrize("name", ONNX)
def test_onnx_files_give_the_outputs_of_the_reference(name):
    graph, stored = load(test_onnx_corpus.path_of(name)), np.load(test_onnx_corpus.CORPUS / f"{name}.npz")
    compare(lower(graph), onnx_runs(graph, stored), opened)


@pytest.mark.wide
@pytest.mark.parametrize("name", test_nir_corpus.GOOD)
def test_nir_files_give_the_outputs_of_the_reference(name):
    case = test_nir_corpus.CASES[name]
    program = lower(load(test_nir_corpus.path_of(name), dt=case["dt"], dialect=test_nir_corpus.dialect_of(name)))
    x, _ = test_nir_corpus.stored(name)
    compare(program, [({program.inputs[0].label: x}, {})], opened)
