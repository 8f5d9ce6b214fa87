"""The session: layouts, names, batches, training, weights, and refusals."""

import numpy as np
import pytest
from nets import dense, join, linear, recurrent
from resuming import assert_goes_on

from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime import errors
from snnc.backends.runtime.weights import load_weights, save_weights
from snnc.backends.session import BackendSession
from snnc.compiler.ir.graph import FileLayout, Graph, Input, Output, Population, StateRef
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF


class FixedEngine:
    """The reference with one batch size and without single steps, as emitted programs are."""

    def __init__(self, program, batch):
        self.inner, self.batch, self.steps = ReferenceEngine(program), batch, program.steps
        self.seen = []

    def forward(self, inputs, initial):
        self.seen += [a.shape[1] for a in inputs.values()]
        return self.inner.forward(inputs, initial)

    def train_batch(self, inputs, target, learning_rate):
        self.seen += [a.shape[1] for a in inputs.values()]
        return self.inner.train_batch(inputs, target, learning_rate)

    def get_parameters(self):
        return self.inner.get_parameters()

    def set_parameters(self, values):
        self.inner.set_parameters(values)

    def counters(self):
        return {}

    def close(self):
        pass


def graph_of(net=dense, seed=0, **options):
    return net(np.random.default_rng(seed), **options)


def session_of(graph, batch=None, **options):
    program = lower(graph, **options)
    return BackendSession(ReferenceEngine(program) if batch is None else FixedEngine(program, batch), program)


def trainable(batch=None, optimizer=None, **options):
    return session_of(graph_of(**options), batch, loss=parse_loss("ce_count"), optimizer=optimizer or Adam(1e-2))


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# ---- running ---------------------------------------------------------------------------------------------------------


def test_run_takes_an_array_or_a_mapping():
    session, x = session_of(graph_of()), values(5, 3, 6)
    np.testing.assert_array_equal(session.run(x)["y"], session.run({"x": x})["y"])
    assert session.run(x)["y"].shape == (5, 3, 4)


@pytest.mark.parametrize(
    ("layout", "order"),
    [(FileLayout(1, 0), (1, 0, 2)), (FileLayout(0, 1), (0, 1, 2)), (FileLayout(2, 0), (1, 2, 0)), (FileLayout(2, 1), (2, 1, 0))],
)
def test_layouts_of_files_are_kept_both_ways(layout, order):
    graph, x = graph_of(), values(5, 3, 6)
    wanted = session_of(graph).run(x)["y"]
    other = graph.copy()
    other.nx.nodes["x"]["operation"] = Input((6,), layout=layout)
    other.nx.nodes["y"]["operation"] = Output(layout=layout)
    found = session_of(other).run(x.transpose(order))["y"]
    np.testing.assert_array_equal(found, wanted.transpose(order))


def test_a_file_without_batch_axis_takes_and_gives_one_sample():
    graph, x = graph_of(), values(5, 1, 6)
    wanted = session_of(graph).run(x)["y"]
    graph.nx.nodes["x"]["operation"] = Input((6,), layout=FileLayout(0, None))
    graph.nx.nodes["y"]["operation"] = Output(layout=FileLayout(0, None))
    np.testing.assert_array_equal(session_of(graph).run(x[:, 0])["y"], wanted[:, 0])


@pytest.mark.parametrize("readout", ["last", "sum", "mean", "max"])
def test_readouts_summarise_over_time(readout):
    graph, x = graph_of(readout=LI(0.9)), values(5, 3, 6)
    whole = session_of(graph).run(x)["y"]
    graph.nx.nodes["y"]["operation"] = Output(readout, FileLayout(None, 0))
    wanted = {"last": whole[-1], "sum": whole.sum(0), "mean": whole.mean(0), "max": whole.max(0)}[readout]
    np.testing.assert_array_equal(session_of(graph).run(x)["y"], wanted)


def test_a_static_input_is_the_same_at_every_step():
    graph, x = graph_of(), values(3, 6)
    wanted = session_of(graph).run(np.repeat(x[None], 7, axis=0))["y"]
    graph.nx.nodes["x"]["operation"] = Input((6,), layout=FileLayout(None, 0))
    session = session_of(graph)
    np.testing.assert_array_equal(session.run(x, steps=7)["y"], wanted)
    np.testing.assert_array_equal(session.run(np.repeat(x[None], 7, axis=0))["y"], wanted)
    np.testing.assert_array_equal(session_of(graph, steps=7).run(x)["y"], wanted)


def test_large_batches_are_split_and_the_last_one_is_filled_up():
    graph, x = graph_of(recurrent), values(5, 10, 6)
    session = session_of(graph, batch=4)
    np.testing.assert_allclose(session.run(x)["y"], session_of(graph).run(x)["y"], rtol=1e-5, atol=1e-6)
    assert session.engine.seen == [4, 4, 4]


def test_initial_states_by_name_number_or_array():
    graph = graph_of(recurrent)
    graph.state_inputs["h0"] = StateRef("hidden", "v")
    session, x = session_of(graph, batch=2), values(4, 3, 6)
    whole = session.run(x, {"hidden.v": np.full((3, 8), 0.7)})["y"]
    np.testing.assert_array_equal(session.run(x, {"h0": 0.7})["y"], whole)
    np.testing.assert_array_equal(session.run(x, {"h0": np.full(8, 0.7)})["y"], whole)
    assert not np.array_equal(session.run(x)["y"], whole)


def test_an_initial_state_is_what_delayed_connections_see():
    graph = Graph("state")
    graph.add("x", Input((2,)))
    graph.add("n", Population(LI(0.5), (2,)))
    graph.connect("x", "n")
    graph.add("y", Output())
    graph.connect("n", "y", source_port="v", delay=1)
    graph.state_inputs["v0"] = StateRef("n", "v")
    found = session_of(graph).run(np.zeros((3, 1, 2)), {"v0": [1.0, 2.0]})["y"]
    np.testing.assert_array_equal(found[:, 0], [[1, 2], [0.5, 1], [0.25, 0.5]])


def test_single_steps_keep_the_state_until_reset():
    session, x = session_of(graph_of(recurrent)), values(6, 3, 6)
    whole = session.run(x)["y"]
    for _ in range(2):
        np.testing.assert_array_equal(np.stack([session.step(step)["y"] for step in x]), whole)
        session.reset()
    session.reset(3, {"hidden.v": 0.5})
    np.testing.assert_array_equal(session.step(x[0])["y"], session.run(x[:1], {"hidden.v": 0.5})["y"][0])


# ---- training --------------------------------------------------------------------------------------------------------


def separable(samples=48, steps=12):
    random = np.random.default_rng(3)
    y = random.integers(0, 2, samples)
    rates = np.where((np.arange(6) < 3) == (y[:, None] == 0), 0.7, 0.1)
    return (random.random((samples, steps, 6)) < rates[:, None]).astype(np.float32), y


def test_fit_learns_and_predicts():
    session, (x, y) = trainable(classes=2), separable()
    history = session.fit(x, y, epochs=15, batch=16)
    assert history.losses[-1] < 0.5 * history.losses[0]
    assert session.evaluate(x, y) > 0.9
    assert session.predict(x).shape == y.shape
    assert [len(b) for b in history.batch_losses] == [3] * 15


def test_fit_is_repeatable_with_a_seed():
    x, y = separable()
    curves = [trainable(classes=2).fit(x, y, epochs=2, batch=16, seed=s).losses for s in (1, 1, 2)]
    assert curves[0] == curves[1] != curves[2]


def test_a_fixed_batch_leaves_the_remainder_out_and_says_so():
    session, (x, y) = trainable(batch=20, classes=2), separable()
    history = session.fit(x, y, epochs=2)
    assert history.dropped == 8
    assert "8 samples" in history.note
    assert session.engine.seen == [20] * 4


def test_an_engine_of_any_batch_takes_a_smaller_last_one():
    seen = []
    x, y = separable()
    history = trainable(classes=2).fit(x, y, batch=20, callback=seen.append)
    assert history.dropped == 0
    assert history.note == ""
    assert [(p.batch, p.batches) for p in seen] == [(0, 3), (1, 3), (2, 3)]


def test_the_learning_rate_may_follow_the_epoch():
    session, (x, y) = trainable(optimizer=SGD(0.1), classes=2), separable()
    before = session.state_dict()
    session.fit(x, y, epochs=2, learning_rate=lambda epoch: 0.0)
    for name, value in session.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_static_samples_train():
    graph = graph_of(classes=2)
    graph.nx.nodes["x"]["operation"] = Input((6,), layout=FileLayout(None, 0))
    session = session_of(graph, loss=parse_loss("ce_count"), optimizer=Adam(1e-2), steps=9)
    x, y = separable()
    assert session.fit(x.mean(1), y, epochs=3).losses[-1] > 0
    assert session.predict(x.mean(1)).shape == y.shape


# ---- weights ---------------------------------------------------------------------------------------------------------


def test_weights_survive_a_file(tmp_path):
    one, other, x = session_of(graph_of(seed=1)), session_of(graph_of(seed=2)), values(5, 3, 6)
    one.save(tmp_path / "w.safetensors")
    other.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(one.run(x)["y"], other.run(x)["y"])
    assert [p.name for p in tmp_path.iterdir()] == ["w.safetensors"]
    assert one.state_dict()["fc1.weight"].shape == (8, 6)
    assert one.state_dict()["hidden.beta"].shape == ()


def test_part_of_the_weights_can_be_set():
    session = session_of(graph_of())
    session.load_state_dict({"fc1.bias": np.zeros(8), "other": 1}, strict=False)
    assert not session.state_dict()["fc1.bias"].any()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda w: w.pop("fc1.bias"), errors.WeightsError, "missing: fc1.bias"),
        (lambda w: w.update(extra=np.zeros(1)), errors.WeightsError, "unexpected: extra"),
        (lambda w: w.update({"fc1.bias": np.zeros(9)}), errors.WeightShapeError, r"\(9,\).*\(8,\)"),
        (lambda w: w.update({"fc1.bias": np.full(8, np.nan)}), errors.WeightNotFiniteError, "fc1.bias"),
    ],
)
def test_wrong_weights_change_nothing(change, error, text):
    session = session_of(graph_of())
    before = session.state_dict()
    wrong = {name: value + 1 for name, value in before.items()}
    change(wrong)
    with pytest.raises(error, match=text):
        session.load_state_dict(wrong)
    for name, value in session.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("optimizer", [Adam(1e-2), SGD(1e-2, momentum=0.9), SGD(1e-2)], ids=["adam", "momentum", "sgd"])
def test_training_goes_on_from_a_file_bit_for_bit(tmp_path, optimizer):
    sessions = [trainable(classes=2, optimizer=optimizer) for _ in range(3)]
    assert_goes_on(*sessions, separable(), tmp_path, batch=16)


def test_weights_alone_start_the_optimiser_anew(tmp_path):
    one, other, (x, y) = trainable(classes=2), trainable(classes=2), separable()
    one.fit(x, y)
    one.save(tmp_path / "whole.safetensors", optimizer=True)
    other.load(tmp_path / "whole.safetensors", optimizer=False)
    assert other.engine.get_optimizer().updates == 0
    session_of(graph_of(classes=2)).load(tmp_path / "whole.safetensors")  # not trained: takes the weights
    one.save(tmp_path / "weights.safetensors")
    with pytest.raises(errors.OptimizerValuesError, match="missing: optimizer:updates"):
        other.load(tmp_path / "weights.safetensors", optimizer=True)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda e: e.pop("optimizer:updates"), "missing: optimizer:updates"),
        (lambda e: e.pop("optimizer:moment2:fc1.weight"), "missing: optimizer:moment2:fc1.weight"),
        (lambda e: e.update({"optimizer:moment3:fc1.weight": np.zeros(1)}), "unexpected: optimizer:moment3"),
        (lambda e: e.update({"optimizer:moment1:fc1.bias": np.zeros(9)}), r"\(9,\).*\(8,\)"),
        (lambda e: e.update({"optimizer:moment1:fc1.bias": np.full(8, np.nan)}), "finite"),
        (lambda e: e.update({"optimizer:updates": np.array([-1])}), "from 0 to"),
        (lambda e: e.update({"optimizer:updates": np.array([2**40])}), "from 0 to"),
        (lambda e: e.update({"optimizer:updates": np.array([1.5])}), "whole number"),
    ],
)
def test_wrong_values_of_an_optimiser_change_nothing(tmp_path, change, text):
    session, (x, y) = trainable(classes=2), separable()
    session.fit(x, y)
    session.save(tmp_path / "good.safetensors", optimizer=True)
    entries = {name: np.array(value) for name, value in load_weights(tmp_path / "good.safetensors").items()}
    change(entries)
    save_weights(tmp_path / "bad.safetensors", {name: v + 1 if not name.startswith("optimizer:") else v for name, v in entries.items()})
    before = session.state_dict()
    with pytest.raises(errors.OptimizerValuesError, match=text):
        session.load(tmp_path / "bad.safetensors")
    for name, value in session.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_a_session_without_an_optimiser_has_none_to_save(tmp_path):
    with pytest.raises(errors.OptimizerValuesError, match="without an optimiser"):
        session_of(graph_of()).save(tmp_path / "w.safetensors", optimizer=True)
    with pytest.raises(errors.OptimizerValuesError, match="does not expose"):
        trainable(batch=4).save(tmp_path / "w.safetensors", optimizer=True)
    assert not list(tmp_path.iterdir())


def test_a_first_epoch_below_0_is_refused():
    x, y = separable()
    with pytest.raises(errors.TrainingOptionError, match="first_epoch is -1"):
        trainable(classes=2).fit(x, y, first_epoch=-1)


def test_a_damaged_or_missing_file_is_refused(tmp_path):
    session = session_of(graph_of())
    (tmp_path / "bad").write_bytes(b"not a file of weights")
    with pytest.raises(errors.WeightFileError, match="bad"):
        session.load(tmp_path / "bad")
    with pytest.raises(errors.WeightFileError, match="missing"):
        session.load(tmp_path / "missing")
    with pytest.raises(errors.WeightFileError, match="written"):
        session.save(tmp_path / "no" / "folder")


# ---- what is refused -------------------------------------------------------------------------------------------------

X = np.zeros((5, 3, 6), np.float32)


def nan(array, *index):
    array = array.copy()
    array[index] = np.nan
    return array


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s: s.run({"z": X}), errors.UnknownNameError, "'x' missing; 'z' unknown"),
        (lambda s: s.run(X, {"nobody": 0}), errors.UnknownNameError, "hidden.v"),
        (lambda s: s.run(X[..., :5]), errors.DataShapeError, r"\[5, 3, 5\]; it takes \[T, B, 6\]"),
        (lambda s: s.run(X, {"hidden.v": np.zeros(3)}), errors.DataShapeError, r"\[8\]"),
        (lambda s: s.run(X.astype(complex)), errors.DataTypeError, "complex"),
        (lambda s: s.run(np.full((5, 3, 6), "a")), errors.DataTypeError, "<U1"),
        (lambda s: s.run(nan(X, 1, 2, 3)), errors.DataNotFiniteError, r"\[1, 2, 3\] \(1 of 90"),
        (lambda s: s.run(X, steps=4), errors.StepsError, "5 steps, but 4"),
        (lambda s: s.run(X, steps=0), errors.StepsError, "0"),
        (lambda s: (s.step(X[0]), s.step(X[0, :2])), errors.BatchSizeError, "reset"),
        (lambda s: s.step(X), errors.DataShapeError, "a step takes"),
        (lambda s: s.fit(X, np.zeros(5)), errors.DataTypeError, "float64"),
        (lambda s: s.fit(X, np.zeros(4, int)), errors.DataShapeError, r"\[4\].*\[5\]"),
        (lambda s: s.fit(X, np.array([0, 1, 4, -1, 0])), errors.LabelRangeError, r"label 4 of sample 2 .* 0 … 3 \(2 of 5"),
        (lambda s: s.fit(X[0], np.zeros(3, int)), errors.DataShapeError, r"\[samples, T, 6\]"),
        (lambda s: s.fit(X, np.zeros(5, int), epochs=0), errors.TrainingOptionError, "epochs is 0"),
        (lambda s: s.fit(X, np.zeros(5, int), batch=0), errors.TrainingOptionError, "batch is 0"),
        (lambda s: s.fit(X, np.zeros(5, int), learning_rate=-1.0), errors.TrainingOptionError, "-1"),
        (lambda s: s.predict(X, output="z"), errors.UnknownNameError, "has y"),
        (lambda s: (s.close(), s.run(X)), errors.ClosedError, "closed"),
        (lambda s: (s.close(), s.save("unwritten.safetensors", optimizer=True)), errors.ClosedError, "closed"),
    ],
)
def test_wrong_use_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(trainable())


def test_a_spike_input_takes_zeros_and_ones_only():
    session = session_of(graph_of(kind="spikes"))
    session.run(X.astype(bool))
    with pytest.raises(errors.NotBinaryError, match=r"0\.5 at index \[0, 0, 0\]"):
        session.run(X + 0.5)


def test_a_fixed_number_of_steps_is_kept():
    with pytest.raises(errors.StepsError, match="compiled for 7"):
        session_of(graph_of(), steps=7).run(X)


def test_a_static_network_needs_to_know_its_steps():
    graph = graph_of()
    graph.nx.nodes["x"]["operation"] = Input((6,), layout=FileLayout(None, 0))
    with pytest.raises(errors.StepsError, match="steps="):
        session_of(graph).run(X[0])


def test_a_fixed_batch_refuses_others():
    session = trainable(batch=4)
    with pytest.raises(errors.BatchSizeError, match="compiled for 4"):
        session.fit(X, np.zeros(5, int), batch=2)
    with pytest.raises(errors.BatchSizeError, match="3 samples do not fill"):
        session.fit(X[:3], np.zeros(3, int))


def test_an_engine_of_sequences_refuses_single_steps():
    with pytest.raises(errors.NoStepwiseError, match="run\\(\\)"):
        session_of(graph_of(), batch=4).step(X[0])


def test_a_network_without_loss_cannot_be_trained():
    with pytest.raises(errors.NotTrainableError, match="loss"):
        session_of(graph_of()).fit(X, np.zeros(5, int))


def test_a_prediction_from_several_outputs_needs_a_name():
    graph = graph_of()
    graph.add("z", Output())
    graph.connect("hidden", "z")
    session = session_of(graph)
    with pytest.raises(errors.AmbiguousOutputError, match="y, z"):
        session.predict(X)
    assert session.predict(X, output="y").shape == (5,)


def test_two_inputs_are_given_by_name_and_agree():
    graph = graph_of()
    graph.add("u", Input((2,)))
    join(graph, "fcu", linear(np.random.default_rng(1), 8, 2), "u", "hidden")
    session = session_of(graph)
    with pytest.raises(errors.UnknownNameError, match="2 inputs, x, u"):
        session.run(X)
    with pytest.raises(errors.BatchSizeError, match="2"):
        session.run({"x": X, "u": X[:, :2, :2]})
    with pytest.raises(errors.StepsError, match="4, 5 steps"):
        session.run({"x": X, "u": X[:4, :, :2]})
    assert session.run({"x": X, "u": X[..., :2]})["y"].shape == (5, 3, 4)


def test_several_axes_of_neurons_keep_their_shape():
    graph = Graph("image")
    graph.add("x", Input((2, 3)))
    graph.add("n", Population(LIF(0.9), (2, 3), {"beta": values(2, 3)}))
    graph.connect("x", "n")
    graph.add("y", Output(layout=FileLayout(1, 0)))
    graph.connect("n", "y")
    session = session_of(graph)
    assert session.run(values(5, 4, 2, 3), {"n.v": np.ones((2, 3))})["y"].shape == (4, 5, 2, 3)


def test_the_session_is_a_context_manager():
    with session_of(graph_of()) as session:
        assert session.counters() == {"dropped_spikes": 0}
    with pytest.raises(errors.ClosedError):
        session.counters()
