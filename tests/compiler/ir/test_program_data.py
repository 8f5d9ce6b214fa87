"""A step program converted to plain data and back is the same program; invalid data are refused."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from corpus_graphs import corpus_graph
from hypothesis import assume, given, settings
from random_graphs import any_graphs, with_readout
from wide import examples, sampled

from snnc.compiler.errors import GraphDataError, SnncError
from snnc.compiler.ir.graph import Population
from snnc.compiler.ir.program_data import program_from_data, program_to_data
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.frontends.load import load

CORPUS = Path(__file__).parents[2] / "corpus"
FILES = [
    CORPUS / next(f for f in case["files"] if f.endswith((".onnx", ".nir")))
    for case in json.loads((CORPUS / "manifest.json").read_text())["cases"]
    if case["expect"] == "import"
]
LOSS = parse_loss("ce_mean_membrane")


def differences(one, other, at="program"):
    """Places where two values differ, down to the bytes of arrays and the types of numbers."""
    if type(one) is not type(other) and not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return [f"{at}: {type(one).__name__}, {type(other).__name__}"]
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
        return [] if same else [at]
    if is_dataclass(one):
        return [d for f in fields(one) for d in differences(getattr(one, f.name), getattr(other, f.name), f"{at}.{f.name}")]
    if isinstance(one, Mapping):
        if list(one) != list(other):
            return [f"{at}: {list(one)}, {list(other)}"]
        return [d for key in one for d in differences(one[key], other[key], f"{at}[{key!r}]")]
    if isinstance(one, tuple):
        if len(one) != len(other):
            return [f"{at}: {len(one)}, {len(other)}"]
        return [d for k, (a, b) in enumerate(zip(one, other, strict=True)) for d in differences(a, b, f"{at}[{k}]")]
    return [] if one == other else [f"{at}: {one!r}, {other!r}"]


def data_and_find(program):
    arrays = []

    def keep(array):
        arrays.append(array)
        return len(arrays) - 1

    return json.loads(json.dumps(program_to_data(program, keep))), arrays.__getitem__


def read_again(program):
    return program_from_data(*data_and_find(program), program.loss, program.optimizer)


@settings(max_examples=examples(10, 60), deadline=None)
@given(any_graphs())
def test_the_program_of_any_network_comes_back(graph):
    try:
        program = lower(graph)
    except SnncError:
        assume(False)
    assert differences(program, read_again(program)) == []


@settings(max_examples=examples(6, 40), deadline=None)
@given(any_graphs())
def test_the_program_of_any_trained_network_comes_back(graph):
    assume(any(True for _ in graph.of_type(Population)))
    graph.steps = 6
    try:
        program = lower(with_readout(graph), loss=LOSS, optimizer=Adam(), truncate=2, loss_output="the readout")
    except SnncError:
        assume(False)
    assert differences(program, read_again(program)) == []


@pytest.mark.parametrize("file", sampled(FILES, 8), ids=lambda p: p.name)
def test_the_program_of_a_file_comes_back(file):
    try:
        graph = load(file, dt=1e-4) if file.suffix == ".nir" else corpus_graph(file)
    except SnncError:
        graph = load(file)
    program = lower(graph)
    assert differences(program, read_again(program)) == []


def small():
    import snnc

    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    return lower(net.graph(), loss=LOSS, optimizer=Adam(), steps=3)


def test_a_program_with_half_states_comes_back():
    import snnc

    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    program = lower(net.graph(), loss=LOSS, optimizer=Adam(), steps=3, half=frozenset({"states", "history"}))
    assert differences(program, read_again(program)) == []


def change(data, *path, to):
    *above, last = path
    for key in above:
        data = data[key]
    data[last] = to


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        (("version",), 2, "a different version of snnc"),
        (("forward", 0, "is"), "eval", "forward 0 must be one of"),
        (("forward", 0, "is"), [], "forward 0 must be one of"),
        (("forward", 0, "target"), "p9_i0", "a name in Fill"),
        (("forward", 0, "more"), 1, "unknown 'more'"),
        (("buffers", "p0_i0", "shape"), [-1.5], "shape of buffers.p0_i0"),
        (("buffers", "p0_i0", "lifetime"), "always", "one of program, sequence, step"),
        (("buffers", "p0_i0", "name"), "p0_i1", "the name of the buffer"),
        (("buffers", "x; system(0)"), {"name": "x; system(0)"}, "lacks"),
        (("populations", 0, "id"), 'p0"', "letters, digits and single underscores"),
        (("populations", 0, "kernel"), 9, "the number of one of"),
        (("populations", 0, "kernel"), True, "the number of one of"),
        (("kernels", 0, "forward"), "s0 = __import__('os')", "the step program is wrong"),
        (("kernels", 0, "forward"), 3, "must be text"),
        (("parameters", "c0_w", "value"), 0, "of the shape of its buffer"),
        (("steps",), 2**40, "a whole number"),
        (("update",), {}, "a list"),
    ],
)
def test_other_data_are_refused(path, to, said):
    data, find = data_and_find(small())
    change(data, *path, to=to)
    with pytest.raises(GraphDataError, match=said):
        program_from_data(data, find, LOSS, Adam())


@pytest.mark.parametrize("data", [None, [], "program", {}, {"version": 1}])
def test_data_that_are_no_program_are_refused(data):
    with pytest.raises(GraphDataError):
        program_from_data(data, lambda place: place, None, None)


def test_every_field_of_a_program_is_saved():
    data, _ = data_and_find(small())
    assert {f.name for f in fields(StepProgram)} - data.keys() == {"loss", "optimizer"}
