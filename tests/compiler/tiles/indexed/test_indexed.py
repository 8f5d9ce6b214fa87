"""Indexed maps and their tables compared with the reference's operations and with dense matrix products."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import snnc
from snnc.backends.reference.backward import run_backward
from snnc.backends.reference.forward import run_forward
from snnc.compiler.ir.arrays.indexed_maps import IndexedMap, IndexedOp, indexed_map
from snnc.compiler.ir.arrays.windows import windows_of
from snnc.compiler.ir.graph import Conv, Graph, Input, Output, Pad, Pool, Population, Reduce, Scale, Slice, Sparse
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.indexed.tables import source_tables, stable_order, target_tables
from snnc.compiler.tiles.mapped.network import describe

assert run_backward is not None


def sparse(random, outputs, inputs, density):
    matrix = scipy.sparse.random_array((outputs, inputs), density=density, random_state=random, format="csr")
    entries = matrix.data.astype(np.float32), matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return Sparse(*entries, (outputs, inputs))


def arrays(random, *shape):
    return random.normal(size=shape).astype(np.float32)


def operations(random):
    """One of each, over (2, 6, 5)."""
    return {
        "sparse": sparse(random, 7, 60, 0.2),
        "conv": Conv(arrays(random, 4, 2, 3, 3), arrays(random, 4), padding=((1, 1), (1, 1))),
        "strided": Conv(arrays(random, 4, 2, 3, 2), None, (2, 1), ((0, 1), (2, 0)), (1, 2)),
        "even stride and dilation": Conv(arrays(random, 3, 2, 2, 3), None, (2, 2), ((2, 2), (2, 2)), (1, 2)),
        "grouped": Conv(arrays(random, 4, 1, 3, 3), arrays(random, 4), groups=2),
        "average": Pool("average", (2, 2), padding=((1, 1), (0, 0))),
        "average of what lies inside": Pool("average", (2, 3), (1, 2), ((1, 1), (1, 1)), count_padding=False),
        "sum": Pool("sum", (3, 2), (2, 1), ceil=True),
        "scale": Scale(arrays(random, 2, 1, 1), arrays(random, 6, 1)),
        "mean": Reduce("mean", (1, 2)),
        "total": Reduce("sum", (0,)),
        "slice": Slice(1, 2, 5),
        "pad": Pad(((0, 0), (1, 2), (0, 1))),
    }


NAMES = tuple(operations(np.random.default_rng(0)))


def lowered(operation, shape=(2, 6, 5)):
    graph = Graph("one")
    graph.add("x", Input((math.prod(shape),) if isinstance(operation, Sparse) else shape))
    graph.connect("x", graph.add("op", operation))
    graph.connect("op", graph.add("p", Population(LI(0.9), port_map(chain(graph))["op", "out"].shape)))
    graph.connect("p", graph.add("y", Output()))
    return lower(graph)


def chain(graph):
    """The graph with an output, so that it is whole."""
    whole = graph.copy()
    whole.connect("op", whole.add("end", Output()))
    return whole


def case(name, seed=0):
    """The map of an operation, its theta, and what the reference makes of random values."""
    program = lowered(operations(np.random.default_rng(seed))[name])
    op = next(o for o in program.forward if isinstance(o, IndexedOp))
    found = indexed_map(op, program.buffers)
    parameters = {n: p.value.astype(np.float64) for n, p in program.parameters.items()}
    weight, bias = getattr(op, "weight", None), getattr(op, "bias", None)
    theta = found.constants.astype(np.float64) if weight is None else parameters[weight].reshape(-1)[found.order]
    if bias is not None:
        theta = np.concatenate([theta, parameters[bias].reshape(-1)])
    x = np.random.default_rng(seed + 1).normal(size=(3, found.inputs))
    return found, theta, x, reference(program, op, parameters, x)


class Cells(dict):
    """Enough of a memory for one operation."""

    batch = 3

    def read(self, value, t):
        return self[value.buffer]

    received = read


def reference(program, op, parameters, x):
    memory = Cells({**parameters, op.source.buffer: x, op.target: np.zeros((3, math.prod(program.buffers[op.target].shape)))})
    run_forward(op, memory, 0)
    return memory[op.target]


def matrix(found: IndexedMap, theta):
    """[outputs, inputs + 1], the last column the biases."""
    whole = np.zeros((found.outputs, found.inputs + 1))
    for i in range(found.length):
        np.add.at(whole, (found.target + i, found.source), theta[found.weight + i])
    return whole


@pytest.mark.parametrize("name", NAMES)
def test_a_map_does_what_the_reference_does(name):
    found, theta, x, wanted = case(name)
    y = np.concatenate([x, np.ones((len(x), 1))], axis=1) @ matrix(found, theta).T
    np.testing.assert_allclose(y, wanted, atol=1e-6)
    assert len(theta) == found.elements


def groups_of(draw, size):
    """Cut [0, size) into ranges."""
    inner = draw(st.sets(st.integers(1, size - 1), max_size=6)) if size > 1 else set()
    bounds = np.array(sorted({0, size, *inner}))
    return bounds[:-1], np.diff(bounds)


@st.composite
def random_maps(draw):
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    inputs, units, length, elements = (draw(st.integers(1, n)) for n in (12, 9, 4, 30))
    places = random.random((units, inputs + 1)) < draw(st.floats(0, 1))
    target, source = np.nonzero(places)
    weight = random.integers(0, elements, len(source))
    if draw(st.booleans()):
        weight = (target * length) % elements
    order = np.lexsort((target, source))
    biases = int(places[:, -1].any())
    found = IndexedMap(inputs, units * length, source[order], target[order] * length, weight[order], length,
                       np.arange(elements + length - biases), biases=biases)  # fmt: skip
    return found, groups_of(draw, found.outputs), groups_of(draw, found.inputs), random.normal(size=found.elements)


def uncut_targets(found, tables, first, theta):
    """The matrix that tables of the target's side describe, run by run."""
    whole = np.zeros((found.outputs, found.inputs + 1))
    for g, start in enumerate(first):
        local = pieces(tables.used, g, theta)
        rows = tables.rows[tables.row_start[g] : tables.row_start[g + 1]]
        for row in range(len(rows) - 1):
            source = tables.keys[tables.key_start[g] + row] if tables.keyed and row < tables.span[g] else tables.low[g] + row
            source = found.inputs if tables.has_bias_row and row == tables.span[g] else source
            for r in tables.run_start[g] + np.arange(rows[row], rows[row + 1]):
                for i in range(tables.length[r]):
                    whole[start + tables.first_target[r] + i, source] += local[tables.first_weight[r] + i]
    return whole


def pieces(found, g, array):
    some = slice(found.group[g], found.group[g + 1])
    parts = [array[a : a + n] for a, n in zip(found.first[some], found.count[some], strict=True)]
    return np.concatenate([np.zeros(0), *parts])


@given(random_maps())
@settings(max_examples=150, deadline=None)
def test_tables_of_targets_hold_every_entry_once(drawn):
    found, (first, count), _, theta = drawn
    tables = target_tables(found, first, count)
    np.testing.assert_allclose(uncut_targets(found, tables, first, theta), matrix(found, theta), atol=1e-12)
    assert (tables.first_target + tables.length <= np.repeat(count, tables.runs)).all()
    assert tables.elements.sum() == len(found.source) * found.length


@given(random_maps())
@settings(max_examples=150, deadline=None)
def test_tables_of_sources_hold_every_entry_but_biases_once(drawn):
    found, _, (first, count), theta = drawn
    tables = source_tables(found, first, count)
    whole = np.zeros((found.outputs, found.inputs))
    for g, start in enumerate(first):
        local, targets = pieces(tables.used, g, theta), pieces(tables.targets, g, np.arange(found.outputs)).astype(int)
        rows = tables.rows[tables.row_start[g] : tables.row_start[g + 1]]
        assert len(rows) == count[g] + 1
        for row in range(count[g]):
            for r in tables.run_start[g] + np.arange(rows[row], rows[row + 1]):
                for i in range(tables.length[r]):
                    whole[targets[tables.first_target[r] + i], start + row] += local[tables.first_weight[r] + i]
        assert len(set(targets)) == len(targets) == tables.targets.sizes[g]
    np.testing.assert_allclose(whole, matrix(found, theta)[:, :-1], atol=1e-12)


def test_a_convolution_makes_runs_as_long_as_its_kernel():
    found, *_ = case("conv")
    tables = target_tables(found, np.array([0]), np.array([found.outputs]))
    inner = tables.length[: tables.rows[tables.span[0]]]
    assert inner.max() == 3
    assert inner.mean() > 2.5
    assert tables.used.sizes[0] == 4 * 2 * 9 + 4


@pytest.mark.parametrize("shape", [(1, 7), (2, 6, 5)])
def test_a_maximum_numbers_the_taps_of_each_window(shape):
    pool = Pool("max", (2,) * (len(shape) - 1), (1,) * (len(shape) - 1), ((1, 0),) * (len(shape) - 1))
    program = lowered(pool, shape)
    found = indexed_map(program.forward[1], program.buffers)
    assert found.maximum
    assert windows_of("op", pool, shape).output == tuple(shape[1:])
    for target in range(found.outputs):
        numbers = found.weight[found.target == target]
        assert sorted(numbers) == list(range(len(numbers)))
        assert (np.argsort(found.source[found.target == target]) == np.argsort(numbers)).all()


def test_gates_of_a_cell_share_one_map_and_its_tables():
    net = snnc.Network("cell", seed=0)
    image = net.input((1, 6, 6), "values")
    cells = net.population((2, 6, 6), snnc.SLSTM(), name="cells")
    for port in snnc.SLSTM().inputs:
        net.connect(image, cells, snnc.Conv(2, 3, padding=1), target_port=port)
        net.connect(cells, cells, snnc.Conv(2, 3, padding=1, bias=False), delay=1, target_port=port)
    links = describe(lower(net.graph())).indexed
    assert len(links) == 2 * len(snnc.SLSTM().inputs)
    assert len({link.indexed.map for link in links}) == 2
    where = TileRange((0,), np.array([18] * 4), ((0, 1),), 1)
    for feedback in (False, True):
        alike = [link.indexed for link in links if (link.source.owner == link.target) == feedback]
        assert len({id(one.on_tiles.tables("target", where)) for one in alike}) == 1
        assert all(one.map.biases == (0 if feedback else 2) for one in alike)


@pytest.mark.parametrize("bound", [1, 2, 65536, 65537, 1 << 31, 1 << 40])
def test_a_stable_order_is_that_of_numpy(bound):
    random = np.random.default_rng(bound)
    keys = random.integers(0, bound, 300)
    keys = np.concatenate([keys, keys[::3], [bound - 1]])
    assert (stable_order(keys, bound) == np.argsort(keys, kind="stable")).all()
