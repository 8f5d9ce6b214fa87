"""Compiling a network into a session with the reference backend."""

import dataclasses

import numpy as np
import pytest

import snnc
from snnc import errors
from snnc.backends.folders.manifest import write_manifest
from snnc.compiler.errors import StepsNeededError, UnknownLossError
from snnc.compiler.ir import graph as ops
from snnc.compiler.ir.graph import Graph, Input, Linear
from snnc.options import compile_options as options
from snnc.project.graph_file import SavedModel, save_graph
from snnc.understanding.describe import describe, recurrences
from snnc.understanding.table import to_text


def network():
    net = snnc.Network("small", seed=3)
    x = net.input(6)
    hidden = net.population(5, snnc.LIF(beta=0.8), name="hidden", parameters={"beta": [0.5, 0.6, 0.7, 0.8, 0.9]}, initial={"v": 0.1})
    readout = net.population(3, snnc.LI(beta=0.9), name="readout", learnable=["beta"])
    net.connect(x, hidden)
    net.connect(hidden, hidden, snnc.Dense(bias=False), delay=1)
    net.connect(hidden, readout)
    net.connect(hidden, readout, snnc.Dense(), delay=2, name="late")
    return net


@pytest.fixture
def x():
    return (np.random.default_rng(0).random((7, 4, 6)) < 0.4).astype(np.float32)


def test_a_compiled_network_runs(x):
    with snnc.compile(network()) as session:
        out = session.run({"input": x})
    assert out["output"].shape == (7, 4, 3)
    assert np.abs(out["output"]).max() > 0


def test_a_project_folder_gives_the_same_numbers_as_the_network(x, tmp_path):
    with snnc.compile(network()) as one, snnc.compile(network(), output=tmp_path / "p") as two, snnc.open(tmp_path / "p") as three:
        results = [s.run({"input": x})["output"] for s in (one, two, three)]
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()
    assert two.project == tmp_path / "p"


def test_a_network_learns_and_keeps_its_options(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 60)
    x = (rng.random((60, 8, 6)) < 0.1 + 0.8 * (np.arange(6) // 2 == y[:, None, None])).astype(np.uint8)
    chosen = {"loss": snnc.CrossEntropy("mean membrane"), "optimizer": snnc.Adam(0.02), "batch": 20, "surrogate": "fast_sigmoid:25"}
    with snnc.compile(network(), **chosen, output=tmp_path / "p") as session:
        history = session.fit(x, y, epochs=8)
        assert history.losses[-1] < 0.7 * history.losses[0]
        assert len(history.batch_losses[0]) == 3
        assert session.evaluate(x, y) > 0.6
    with snnc.open(tmp_path / "p") as again:
        assert again.options.optimizer == snnc.Adam(0.02)
        assert again.options.loss == snnc.CrossEntropy("mean membrane")


def test_a_graph_survives_its_file(tmp_path):
    graph = network().graph()
    save_graph(graph, tmp_path)
    again = SavedModel(tmp_path).graph
    assert describe(again) == describe(graph)
    assert again.edges == graph.edges
    for name, operation in graph.of_type(Linear):
        assert (again.operation(name).weight == operation.weight).all()


def test_every_kind_of_operation_survives_its_file(tmp_path):
    graph = Graph("all")
    graph.add("x", ops.Input((2, 6, 6), "spikes", ops.FileLayout(1, None)))
    graph.add("conv", ops.Conv(np.ones((3, 2, 3, 3), np.float32), None, (2, 2), ((1, 1), (0, 1)), groups=1))
    graph.add("pool", ops.Pool("max", (2, 2), ceil=True))
    graph.add("scale", ops.Scale(np.float32(2.0) * np.ones((3, 1, 1), np.float32), np.zeros((3, 1, 1), np.float32), True))
    graph.add("slice", ops.Slice(0, 1, 2))
    graph.add("pad", ops.Pad(((0, 1), (2, 0))))
    indices = np.array([0, 2, 1], np.int32)
    graph.add("sparse", ops.Sparse(np.ones(3, np.float32), indices, np.array([0, 2, 3], np.int32), (2, 3), np.ones(2, np.float32), False))
    graph.add("reduce", ops.Reduce("mean", (1, 2), True))
    graph.add("reshape", ops.Reshape((1,)))
    graph.add("one", ops.OneToOne(np.float32(3.0) * np.ones(()), True))
    save_graph(graph, tmp_path)
    again = SavedModel(tmp_path).graph
    for name in graph.names:
        for field in dataclasses.fields(graph.operation(name)):
            wanted, found = (getattr(g.operation(name), field.name) for g in (graph, again))
            assert np.array_equal(found, wanted) if np.ndim(wanted) else found == wanted
            assert isinstance(found, np.ndarray) == isinstance(wanted, np.ndarray | np.generic)


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: (p / "graph.json").unlink(),
        lambda p: (p / "graph.json").write_text("{"),
        lambda p: (p / "graph.json").write_text('{"version": 1}'),
        lambda p: (p / "arrays.npz").write_bytes(b"PK"),
        lambda p: (p / "graph.json").write_text((p / "graph.json").read_text().replace("spike(", "eval(")),
        lambda p: (p / "options.json").write_text("[]"),
        lambda p: (p / "options.json").write_text("[" * 100_000),
        lambda p: (p / "options.json").write_text((p / "options.json").read_text().replace('"seed": 0', '"seed": {}')),
        lambda p: (p / "options.json").write_text((p / "options.json").read_text().replace('"steps": null', '"steps": -3')),
        lambda p: (p / "options.json").write_text((p / "options.json").read_text().replace('"target": "reference"', '"target": []')),
        lambda p: (p / "options.json").write_text(
            (p / "options.json").read_text().replace('"optimizer": null', '"optimizer": {"name": "sgd", "lr": ""}')
        ),
        lambda p: (p / "options.json").write_text((p / "options.json").read_text().replace('"threads": null', f'"threads": {2**63}')),
    ],
)
@pytest.mark.parametrize("listed", [False, True], ids=["as damage", "as its own list says"])
def test_a_damaged_project_is_refused(tmp_path, damage, listed):
    snnc.compile(network(), output=tmp_path / "p").close()
    damage(tmp_path / "p" / "model")
    if listed:
        write_manifest(tmp_path / "p")
    with pytest.raises((errors.ProjectFolderError, errors.OptionValueError)):
        snnc.open(tmp_path / "p")


def test_options_survive_their_file():
    chosen = options.options(
        "gc200",
        steps=9,
        batch=4,
        loss="mse_count:0.8,0.2",
        optimizer="sgd:0.1,0.9",
        surrogate="fast_sigmoid:10",
        seed=3,
        capacity=7,
        mode="drop",
    )
    again = options.from_data(options.to_data(chosen))
    assert again == chosen


def test_the_input_kind_can_be_said_at_compile_time():
    net = snnc.Sequential(3, snnc.Dense(2), snnc.LI(), kind="values")
    with snnc.compile(net, input_kind="spikes") as session:
        assert next(o.kind for _, o in session.graph.of_type(Input)) == "spikes"


def test_a_description_names_what_was_understood():
    found = describe(network().graph())
    assert recurrences(network().graph()) == [{"populations": ["hidden"], "delays": [1]}]
    hidden = found["layers"][0]
    assert hidden["recurrent"]
    assert hidden["parameters"]["beta"] == {"shape": [5], "least": 0.5, "mean": 0.7, "most": 0.9}
    assert found["parameters"] == 6 * 5 + 5 + 25 + 2 * (5 * 3 + 3) + 1
    assert any("beta = 0.5 … 0.9" in line for line in to_text(found))


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"batch": 0}, errors.OptionValueError),
        ({"steps": -1}, errors.OptionValueError),
        ({"capacity": 0}, errors.OptionValueError),
        ({"mode": "lossy"}, errors.OptionValueError),
        ({"seed": -1}, errors.OptionValueError),
        ({"memory": "500M"}, errors.OptionValueError),
        ({"target": "cpu", "memory": "plenty"}, errors.OptionValueError),
        ({"target": "cpu", "threads": 0}, errors.OptionValueError),
        ({"loss": "huber"}, UnknownLossError),
        ({"optimizer": "lion", "loss": "ce_count"}, errors.UnknownOptimizerError),
        ({"optimizer": "adam:x", "loss": "ce_count"}, errors.UnknownOptimizerError),
        ({"optimizer": snnc.Adam(lr=0.0), "loss": "ce_count"}, errors.OptionValueError),
        ({"target": "gc200"}, StepsNeededError),
        ({"target": "gc201", "steps": 3}, snnc.SnncError),
        ({"input_kind": "events"}, errors.ModelFormatError),
    ],
)
def test_bad_options_are_refused(given, error):
    with pytest.raises(error):
        snnc.compile(network(), **given)


@pytest.mark.parametrize("model", [42, None, [1, 2]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(errors.ModelFormatError):
        snnc.compile(model)


def test_losses_by_their_words():
    assert snnc.CrossEntropy().name == "ce_count"
    assert snnc.CrossEntropy("max membrane").name == "ce_max_membrane"
    with pytest.raises(UnknownLossError):
        snnc.CrossEntropy("mse")


def test_the_reference_backend_shows_its_program(capsys):
    with snnc.compile(network()) as session:
        session.show()
        layers = [name for name, _ in session.graph.of_type(ops.Population)]
    shown = capsys.readouterr().out
    assert layers
    assert all(name in shown for name in layers)
