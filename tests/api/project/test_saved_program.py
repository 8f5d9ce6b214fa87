"""A project contains its step program, which is used without deriving it again only if this user compiled it."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import snnc
from snnc import errors
from snnc.backends.folders.manifest import write_manifest
from snnc.driver import folder as project_folder
from snnc.driver.folder import read_project
from snnc.driver.lowering import lower_graph
from snnc.project.known_projects import is_known, remember

INPUT = np.ones((5, 2, 4), np.float32)
TRAINED = {"loss": "ce_count", "steps": 5, "batch": 2}


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def derived(monkeypatch):
    """The graphs that were lowered since."""
    found = []

    def counted(graph, chosen):
        found.append(graph.name)
        return lower_graph(graph, chosen)

    monkeypatch.setattr(project_folder, "lower_graph", counted)
    return found


def network():
    return snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())


def compiled(folder, target="reference"):
    snnc.compile(network(), target, output=folder, **TRAINED).close()
    return folder


def edit(folder, change):
    """Change the step program, and the list of files with it."""
    file = folder / "model" / "program.json"
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))
    write_manifest(folder)


def test_opening_and_training_derive_nothing(tmp_path, derived, monkeypatch):
    compiled(tmp_path / "p")
    monkeypatch.setattr("snnc.driver.lowering.lower", None)
    with snnc.open(tmp_path / "p") as session:
        before = session.run(INPUT)["output"]
        session.fit(np.swapaxes(INPUT, 0, 1), np.array([0, 1]), epochs=2)
        assert not np.array_equal(session.run(INPUT)["output"], before)
    assert derived == []


@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
def test_a_project_of_every_kind_is_read_as_it_was_derived(tmp_path, derived, target):
    snnc.driver.compiling.compile_to_folder(
        network().graph(), snnc.driver.compiling.options(target, steps=5, batch=2, loss="ce_count"), tmp_path / "p"
    )
    found = read_project(tmp_path / "p")
    assert derived == []
    wanted = lower_graph(found.graph, found.options).program
    assert [*found.program.buffers.values()] == [*wanted.buffers.values()]
    assert (found.program.forward, found.program.backward, found.program.update) == (wanted.forward, wanted.backward, wanted.update)
    assert (found.program.loss, found.program.optimizer, found.program.steps) == (wanted.loss, wanted.optimizer, 5)


def test_a_project_without_one_derives_it(tmp_path, derived):
    folder = compiled(tmp_path / "p")
    (folder / "model" / "program.json").unlink()
    write_manifest(folder)
    remember(folder)
    snnc.open(folder).close()
    assert len(derived) == 1


def test_one_of_another_version_is_derived_again(tmp_path, derived):
    folder = compiled(tmp_path / "p")
    edit(folder, lambda data: data.update(version=99))
    remember(folder)
    snnc.open(folder).close()
    assert len(derived) == 1


def test_one_of_somebody_else_is_not_read(tmp_path, derived):
    folder = compiled(tmp_path / "p")
    with snnc.open(folder) as session:
        wanted = session.run(INPUT)["output"]
    edit(folder, lambda data: data["parameters"].update(p1_a0=data["parameters"]["p1_a0"] | {"value": 0.125}))
    assert not is_known(folder)
    with snnc.open(folder) as session:
        assert np.array_equal(session.run(INPUT)["output"], wanted)
    assert len(derived) == 1


def test_one_that_was_changed_is_refused(tmp_path):
    folder = compiled(tmp_path / "p")
    file = folder / "model" / "program.json"
    file.write_text(file.read_text().replace('"truncate": null', '"truncate": 2'))
    with pytest.raises(errors.DamagedProjectError, match=r"model/program\.json"):
        snnc.open(folder)


def test_arrays_that_nobody_listed_are_not_read(tmp_path, derived):
    folder = compiled(tmp_path / "p")
    shutil.copy(folder / "model" / "arrays.npz", folder / "model" / "program.npz")
    snnc.open(folder).close()
    assert len(derived) == 1


def test_a_changed_graph_does_not_run_with_the_old_program(tmp_path, derived):
    folder = compiled(tmp_path / "p")
    other = network().graph()
    population = other.operation("lif")
    other.nx.nodes["lif"]["operation"] = replace(population, parameters={"beta": np.float32(0.25)})
    project_folder.save_graph(other, folder / "model")
    with pytest.raises(errors.DamagedProjectError):
        snnc.open(folder)
    write_manifest(folder)
    with snnc.open(folder) as session, snnc.compile(other, **TRAINED) as wanted:
        assert np.array_equal(session.run(INPUT)["output"], wanted.run(INPUT)["output"])
    assert len(derived) == 1


def test_arrays_of_the_program_alone_are_saved_too(tmp_path, derived):
    graph = network().graph()
    name = next(n for n, op in graph.of_type(snnc.compiler.ir.graph.Linear))
    operation = graph.operation(name)
    graph.nx.nodes[name]["operation"] = replace(operation, weight=operation.weight.astype(np.float64) / 3)
    snnc.compile(graph, "reference", output=tmp_path / "p").close()
    assert (tmp_path / "p" / "model" / "program.npz").exists()
    with snnc.open(tmp_path / "p") as session, snnc.compile(graph) as wanted:
        assert np.array_equal(session.run(INPUT)["output"], wanted.run(INPUT)["output"])
    assert derived == []
