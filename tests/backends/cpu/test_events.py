"""Spikes as events: the same results as from dense arrays, and refusal of invalid events."""

import numpy as np
import pytest
from cpu_projects import data, opened
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import delayed, recurrent

import snnc
from snnc.backends.native.library import NativeError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import DataShapeError, EventsError
from snnc.backends.runtime.events import Events
from snnc.backends.session import BackendSession
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI


def spiking(make):
    """The network of `make`, its input declared as spikes."""
    graph = make(np.random.default_rng(3))
    changed = Graph(graph.name)
    for name in graph.names:
        operation = graph.operation(name)
        changed.add(name, Input(operation.shape, "spikes") if isinstance(operation, Input) else operation)
    for edge in graph.edges:
        changed.connect(edge.source, edge.target, source_port=edge.source_port, target_port=edge.target_port, delay=edge.delay)
    return changed


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.tuples(*[st.integers(1, 5)] * 4), st.floats(0, 1))
def test_dense_arrays_addresses_and_rows_are_the_same_events(seed, shape, density):
    random = np.random.default_rng(seed)
    dense = (random.random(shape) < density).astype(np.float32)
    events = Events.from_dense(dense)
    np.testing.assert_array_equal(events.dense(), dense)
    places = random.permutation(np.argwhere(dense.reshape(*shape[:2], -1)))
    sorted_again = Events.from_aer(*np.concatenate([places, places]).T, shape)
    np.testing.assert_array_equal(sorted_again.ids, events.ids)
    np.testing.assert_array_equal(sorted_again.begin, events.begin)
    chosen = random.integers(0, shape[0], 3)
    np.testing.assert_array_equal(events.of_samples(chosen).dense(), dense[chosen].swapaxes(0, 1))


@pytest.mark.parametrize("count", [1, 40, 4000])
def test_few_and_many_addresses_are_sorted_alike(count):
    shape = (10, 4, 7, 30)
    places = np.random.default_rng(0).integers(0, (10, 4, 210), (count, 3))
    dense = np.zeros((10, 4, 210), np.float32)
    dense[tuple(places.T)] = 1
    events, expected = Events.from_aer(*places.T, shape), Events.from_dense(dense.reshape(shape))
    np.testing.assert_array_equal(events.ids, expected.ids)
    np.testing.assert_array_equal(events.begin, expected.begin)


@pytest.mark.representative("delayed")
@pytest.mark.parametrize("make", [recurrent, delayed])
def test_training_and_running_on_events_give_the_bits_of_dense_arrays(make):
    program = lower(spiking(make), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y")
    inputs, labels = data(program, 7, 5)
    events = {name: Events.from_dense(x) for name, x in inputs.items()}
    with opened(program) as one, opened(program) as other:
        for _ in range(2):
            assert one.train_batch(inputs, labels, 1e-2) == other.train_batch(events, labels, 1e-2)
        for name, value in one.get_parameters().items():
            np.testing.assert_array_equal(other.get_parameters()[name], value)
        found, wanted = other.forward(events, {}), one.forward(inputs, {})
        for name, record in wanted.items():
            np.testing.assert_array_equal(found[name], record)


def test_sessions_fit_predict_and_run_on_events_on_any_engine():
    program = lower(spiking(recurrent), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), loss_output="y")
    random = np.random.default_rng(0)
    x, y = (random.random((11, 6, 6)) < 0.4).astype(np.float32), random.integers(0, 4, 11)
    with opened(program) as engine:
        for session in (BackendSession(engine, program), BackendSession(ReferenceEngine(program), program)):
            start = session.state_dict()
            dense = session.fit(x, y, epochs=2, batch=4).losses, session.predict(x)
            session.load_state_dict(start)
            found = session.fit(Events.from_dense(x), y, epochs=2, batch=4).losses, session.predict(Events.from_dense(x))
            assert found[0] == dense[0]
            np.testing.assert_array_equal(found[1], dense[1])
            sequence = x.swapaxes(0, 1)
            np.testing.assert_array_equal(session.run(Events.from_dense(sequence))["y"], session.run(sequence)["y"])


def test_events_reach_connections_that_read_rows_and_inputs_of_values():
    graph = Graph("values")
    graph.add("x", Input((6,), "values"))
    graph.add("readout", Population(LI(0.9), (6,)))
    graph.add("y", Output())
    graph.connect("x", "readout", delay=1)
    graph.connect("readout", "y")
    program = lower(graph)
    inputs, _ = data(program, 5, 3)
    dense = (inputs["x0"] != 0).astype(np.float32)
    with opened(program) as engine:
        found = engine.forward({"x0": Events.from_dense(dense)}, {})
        wanted = engine.forward({"x0": dense}, {})
        for name, record in wanted.items():
            np.testing.assert_array_equal(found[name], record)


@pytest.mark.parametrize(
    ("begin", "ids", "text"),
    [
        ([0, 1, 1], [4], "from 0"),
        ([0, 1, 1], [-1], "from 0"),
        ([0, 2, 2], [1, 1], "row 0"),
        ([0, 0, 3], [0, 2, 1], "row 1"),
        ([0, 1], [0], "give 3"),
        ([0, 2, 1], [0], "give 3"),
        ([1, 1, 1], [0], "give 3"),
        ([0.0, 0.0, 0.0], [], "integers"),
    ],
)
def test_what_is_no_event_is_refused(begin, ids, text):
    with pytest.raises(EventsError, match=text):
        Events(np.array(begin), np.array(ids, np.int64), (2, 1, 4))


def test_addresses_out_of_range_and_other_shapes_are_refused():
    with pytest.raises(EventsError, match="from 0 to 1"):
        snnc.Events.from_aer([2], [0], [0], (2, 1, 4))
    with pytest.raises(EventsError, match="two axes"):
        snnc.Events(np.zeros(1, int), np.zeros(0, int), (3, 4))
    program = lower(spiking(recurrent))
    with opened(program) as engine:
        with pytest.raises(DataShapeError, match="events"):
            BackendSession(engine, program).run(Events.from_dense(np.ones((4, 2, 5))))
        engine.forward(data(program, 4, 2)[0], {})
        for begin, ids, text in (([0, 1], [1], "rows"), ([0] + [1] * 8, [9], "below 6"), ([0] + [2] * 8, [3, 1], "ascending")):
            with pytest.raises(NativeError, match=text):
                engine.session.set_events("x0", np.array(begin), np.array(ids))
