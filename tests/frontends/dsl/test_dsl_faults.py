"""Every mistake in a network of the DSL is reported at its line."""

import traceback
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from dsl_nets import relay

import snnc
from snnc.compiler.errors import CycleWithoutDelayError, DuplicateNodeError, TooLargeError, UnknownNodeError
from snnc.frontends.dsl import errors

TWICE = scipy.sparse.csr_array((np.ones(2), [0, 0], [0, 2, 2, 2, 2, 2]), (5, 6))
NAN = scipy.sparse.csr_array([[np.nan, 1.0], [0, 0]])
FAULTS = [
    (lambda net, n: net.connect(n.image, n.flat, snnc.Conv(4, 3)), errors.ConnectionShapeError, "'flat': Conv returns (4, 6, 6)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 5)), errors.ConnectionShapeError, "from the source's shape (2, 8, 8)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 9)), errors.ConnectionWindowError, "(2, 8, 8)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 0)), errors.ConnectionWindowError, "kernel is 0"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, (3, 3, 3))), errors.ConnectionWindowError, "(3, 3, 3)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, stride=1.5)), errors.ConnectionWindowError, "stride is 1.5"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, groups=3)), errors.ConnectionWindowError, "3 groups"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(0, 3)), errors.ConnectionWindowError, "2 channels to 0 in"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv("4", 3)), errors.ConnectionWindowError, "2 channels to '4' in"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, padding="some")), errors.ConnectionWindowError, "'some'"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, padding=-1)), errors.ConnectionWindowError, "-1"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, padding=[(1, 1)])), errors.ConnectionWindowError, "1 entries"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, 2, "same")), errors.ConnectionWindowError, "stride is (2, 2)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, init=np.ones((4, 2, 3)))), errors.ConnectionShapeError, "(4, 2, 3, 3)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 3, bias=[1.0])), errors.ConnectionShapeError, "bias"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Conv(4, 3)), errors.ConnectionWindowError, "(channels, length)"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.MaxPool(2)), errors.ConnectionWindowError, "MaxPool needs"),
    (lambda net, n: net.connect(n.image, n.map, snnc.MaxPool(3, padding=3)), errors.ConnectionWindowError, "padding"),
    (lambda net, n: net.connect(n.image, n.map, snnc.SumPool(2)), errors.ConnectionShapeError, "SumPool returns (2, 4, 4)"),
    (lambda net, n: net.connect(n.image, n.flat, snnc.Flatten()), errors.ConnectionShapeError, "(128,)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Dense()), errors.ConnectionShapeError, "(144,)"),
    (lambda net, n: net.connect(n.x, n.flat, [snnc.Dense(), snnc.Dense()]), errors.ConnectionShapeError, "part 1 (Dense)"),
    (lambda net, n: net.connect(n.x, n.flat, [snnc.Dense(3), snnc.OneToOne()]), errors.ConnectionShapeError, "part 2 (OneToOne)"),
    (lambda net, n: net.connect(n.x, n.flat, []), errors.ConnectionKindError, "empty list"),
    (lambda net, n: net.connect(n.x, n.flat, [snnc.Dense(3), snnc.LIF()]), errors.ConnectionKindError, "list of connections"),
    (lambda net, n: net.shape_after(n.x, snnc.Dense()), errors.ConnectionShapeError, "after 'x': Dense does not define"),
    (lambda net, n: net.shape_after(n.x, snnc.Sparse(density=0.5)), errors.ConnectionShapeError, "Sparse(outputs=n)"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse()), errors.SparseMatrixError, "one of a matrix"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(np.eye(5), density=0.1)), errors.SparseMatrixError, "one of a matrix"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(np.eye(6, 5))), errors.ConnectionShapeError, "(5, 6)"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(np.zeros((5, 6)))), errors.SparseMatrixError, "5 x 6"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse([["a"] * 6] * 5)), errors.SparseMatrixError, "not a matrix"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(density=0)), errors.SparseMatrixError, "density is 0"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(density=1.5)), errors.SparseMatrixError, "1.5"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(fan_in=7)), errors.SparseMatrixError, "6 neurons"),
    (lambda net, n: net.connect(n.x, n.map, snnc.Sparse(fan_in=2)), errors.ConnectionShapeError, "(4, 6, 6)"),
    (lambda net, n: net.connect(n.two, n.pair, snnc.Sparse(NAN)), errors.InitialiserError, "NaN"),
    (
        lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(density=0.5, init=snnc.Orthogonal())),
        errors.InitialiserError,
        "draws matrices",
    ),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(seed=-1)), errors.InitialiserError, "-1"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(init=snnc.Uniform(2, np.inf))), errors.InitialiserError, "cannot be created"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(init=snnc.KaimingNormal(mode="in"))), errors.InitialiserError, "'in'"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=np.ones((2, 2)))), errors.SynapticDelayError, "(5, 6)"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=np.full((5, 6), 0.5))), errors.SynapticDelayError, "0.5"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=np.full((5, 6), -1))), errors.SynapticDelayError, "-1"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays="slow")), errors.SynapticDelayError, "()"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=snnc.UniformDelay(5, 1))), errors.SynapticDelayError, "UniformDelay"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=scipy.sparse.eye_array(5, 6))), errors.SynapticDelayError, "30 weights"),
    (lambda net, n: net.connect(n.two, n.pair, snnc.Sparse(np.eye(2), delays=NAN)), errors.SynapticDelayError, "other places"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse([[1, 2], [3]])), errors.SparseMatrixError, "not a matrix"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=np.full((5, 6), np.nan))), errors.SynapticDelayError, "nan"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=snnc.UniformDelay(1.5, 3))), errors.SynapticDelayError, "UniformDelay"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Dense(delays=snnc.UniformDelay(1, 3, seed=-1))), errors.SynapticDelayError, "seed=-1"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(4, 10**30)), errors.ConnectionWindowError, "kernel is 1000"),
    (lambda net, n: net.connect(n.image, n.map, snnc.Conv(10**9, 3)), errors.ConnectionShapeError, "(1000000000, 2, 3, 3)"),
    (lambda net, n: net.connect(n.image, n.map, snnc.MaxPool(2**31 - 1)), errors.ConnectionWindowError, "no window"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(fan_in=1.5)), errors.SparseMatrixError, "fan_in is 1.5"),
    (lambda net, n: net.shape_after(n.x, snnc.Sparse(fan_in=1)), errors.ConnectionShapeError, "outputs=n"),
    (lambda net, n: net.connect(n.x, n.flat, snnc.Sparse(np.ones((5, 6)), delays=TWICE)), errors.SynapticDelayError, "a place twice"),
    (lambda net, n: net.population("ten", snnc.LIF()), errors.NetworkShapeError, "'ten'"),
    (lambda net, n: net.population(3, snnc.LIF(), parameters={"beta": "much"}), errors.PopulationOptionError, "'much'"),
    (lambda net, n: net.population(3, snnc.LIF(), initial={"v": np.nan}), errors.PopulationOptionError, "NaN"),
    (lambda net, n: n.x[6:], errors.ViewError, "(6,)"),
    (lambda net, n: n.x[::2], errors.ViewError, "without a step"),
    (lambda net, n: n.x[7], errors.ViewError, "7"),
    (lambda net, n: n.x["a"], errors.ViewError, "'a'"),
    (lambda net, n: n.x[0, 0], errors.ViewError, "2 axes"),
    (lambda net, n: list(n.x), TypeError, "node[:80]"),
    (lambda net, n: net.group(), errors.GroupError, "at least one node"),
    (lambda net, n: net.group(n.x, n.image), errors.GroupError, "(2, 8, 8)"),
    (lambda net, n: net.group(n.x, snnc.Network().input(3)), errors.ForeignNodeError, "'test'"),
    (lambda net, n: net.connect(n.flat, net.group(n.pair, n.flat)), CycleWithoutDelayError, "'flat' -> 'flat'"),
    (lambda net, n: net.connect(n.flat[:2], n.flat[2:]), CycleWithoutDelayError, "delay=1"),
    (lambda net, n: net.connect(net.group(n.flat, n.x), n.pair, source_port="v"), errors.PopulationOptionError, "'x'"),
    (lambda net, n: net.output(net.group(n.flat, n.pair), "w"), errors.PopulationOptionError, "'w'"),
    (lambda net, n: net.connect(n.flat, n.x[:3], delay=1), UnknownNodeError, "'x' is an input"),
    (lambda net, n: net.connect(n.x, net.group(n.flat, n.pair), target_port="w"), UnknownNodeError, "'flat' has no input port 'w'"),
    (lambda net, n: net.connect(n.x, n.flat, name="pair"), DuplicateNodeError, "'pair'"),
    (lambda net, n: net.population(2**31, snnc.LIF()), TooLargeError, "2147483648"),
    (lambda net, n: net.connect(net.input(10**5), net.population(10**5, relay())), errors.ConnectionShapeError, "10000000000"),
]


class Nodes:
    def __init__(self, net):
        self.x, self.image, self.two = net.input(6, name="x"), net.input((2, 8, 8), name="image"), net.input(2, name="two")
        self.flat, self.map = net.population(5, snnc.LIF(), name="flat"), net.population((4, 6, 6), snnc.LIF(), name="map")
        self.pair = net.population(2, snnc.LIF(), name="pair")


@pytest.mark.parametrize(("write", "error", "says"), FAULTS, ids=range(len(FAULTS)))
def test_a_fault_is_refused_at_the_line_that_wrote_it(write, error, says):
    net = snnc.Network("test")
    nodes = Nodes(net)
    before = net._graph.names
    with pytest.raises(error) as caught:
        write(net, nodes)
    assert says in str(caught.value)
    if issubclass(error, snnc.SnncError):
        package = {Path(folder) for part in (snnc, snnc.compiler, snnc.frontends) for folder in part.__path__}
        outside = [f for f in traceback.extract_tb(caught.tb) if not any(Path(f.filename).is_relative_to(p) for p in package)]
        assert Path(outside[-1].filename) == Path(__file__)
        assert outside[-1].name == "<lambda>"
    assert set(net._graph.names) - set(before) <= {"input", "relay"}


@pytest.mark.parametrize(
    ("layers", "says"),
    [
        ((snnc.Conv(4, 3), snnc.Conv(4, 3), snnc.LIF()), "layer 2"),
        ((snnc.MaxPool(2), snnc.Sparse(density=0.1), snnc.LIF()), "layer 2: Sparse does not define"),
        ((snnc.Conv(4, 3), snnc.LIF(), snnc.MaxPool(2)), "last layer"),
        ((snnc.LIF(), "pool"), "layer 2 is 'pool'"),
    ],
)
def test_layers_that_do_not_follow_one_another_are_refused(layers, says):
    with pytest.raises(errors.SequenceError) as caught:
        snnc.Sequential((1, 8, 8), *layers)
    assert says in str(caught.value)
