"""The emitted folder: structure, the author's names, warnings, CMake."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from nets import dense, join, linear
from poplar_projects import BATCH, HOSTILE, STEPS, machine, project
from wide import examples

from snnc.backends.codegen.names import c_string, comment_text
from snnc.backends.emulator.build import include_dir, prefix
from snnc.backends.native.library import NativeLibraryError, NativeSession
from snnc.backends.poplar.build import build_poplar
from snnc.backends.poplar.emit import emit_poplar, render
from snnc.backends.poplar.errors import PlanMismatchError, UnsupportedOnPoplarError
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.vertices.losses import loss_context
from snnc.backends.toolchain.compilers import compiler
from snnc.compiler.errors import BuildError
from snnc.compiler.ir.graph import Population
from snnc.compiler.ir.plan_json import plan_from_json
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.tiles.mapped.losses import LossShape
from snnc.compiler.tiles.mapper import make_plan

SOURCES = ("host.cpp", "codelets.cpp")


def code_of(text):
    """C++ without comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


@pytest.mark.representative("*-hostile", "codelets*")
@pytest.mark.parametrize("name", ["hostile", "exact several inputs"])
@pytest.mark.parametrize("source", SOURCES)
def test_sources_compile_without_a_warning(name, source):
    command = [
        *compiler(),
        "-std=c++17",
        "-O1" if source == "codelets.cpp" else examples("-O0", "-O1"),
        "-Wall",
        "-Wextra",
        "-Werror",
        "-isystem",
        str(include_dir()),
        "-c",
        source,
        "-o",
        os.devnull,
    ]
    result = subprocess.run(command, cwd=project(name).folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_codelets_compile_where_nobody_counts_cycles(tmp_path):
    text = (project("exact").folder / "codelets.cpp").read_text()
    include = "#include <poplar/Vertex.hpp>\n"
    assert include in text
    (tmp_path / "codelets.cpp").write_text(text.replace(include, include + "#undef SNNC_COUNT_CYCLES\n"))
    command = [
        *compiler(),
        "-std=c++17",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-isystem",
        str(include_dir()),
        "-c",
        "codelets.cpp",
        "-o",
        os.devnull,
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_names_of_the_author_are_never_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    case = project("hostile")
    for source in (*SOURCES, "CMakeLists.txt"):
        text = (case.folder / source).read_text()
        assert text.isascii()
        assert "??/" not in text
        assert not re.search(r"//[^\n]*\\\n", text), "a comment goes on in the next line"
        for word in ("pwned", "system"):
            assert word not in code_of(text)
    case.open().forward(case.data()[0], {})
    assert not (tmp_path / "pwned").exists()
    description = json.loads((case.folder / "project.json").read_text())
    assert {i["label"] for i in description["inputs"]} == {HOSTILE[0], "z" + HOSTILE[0]}


@pytest.mark.parametrize("name", [*HOSTILE, "\\", "\n", "\x00", "*/", "??/", "?" * 9, "/*/", "a" * 500, ""])
def test_comment_text_ends_neither_comment_nor_line(name):
    text = comment_text(name)
    assert text.isascii()
    assert text.isprintable()
    assert not any(bad in text for bad in ("*/", "/*", "\\", "??", "\n", '"'))
    assert len(text) <= 80
    assert re.fullmatch(r'"(?:[A-Za-z0-9 _\-.,:()\[\]]|\\[0-7]{3})*"', c_string(name))


def test_populations_of_one_structure_share_their_codelets():
    random = np.random.default_rng(0)
    graph = dense(random, hidden=8)
    for name in ("a", "b", "c"):
        graph.add(name, Population(LIF(0.9), (8,)))
    for source, target in (("hidden", "a"), ("a", "b"), ("b", "c"), ("c", "readout")):
        join(graph, f"{source}_{target}", linear(random, 8 if target != "readout" else 4, 8), source, target)
    program = lower(graph, loss=parse_loss("ce_count"), optimizer=Adam(), steps=STEPS)
    plan = make_plan(program, machine(16), steps=STEPS, batch=BATCH)
    codelets = render(PoplarNetwork(program, plan))["codelets.cpp"]
    kinds = re.findall(r"^class (\w+)", codelets, re.M)
    assert len(kinds) == len(set(kinds))
    assert sum(kind.startswith("Forward") for kind in kinds) == 3, "behind values, behind one link of spikes, behind two"
    assert re.search(r"///   p\d a\n///   p\d b\n///   p\d c\nclass Forward", codelets)
    assert {"Clock", "Loss", "LossSum", "Schedule", "Update"} <= set(kinds)


def test_further_windows_exist_only_where_a_window_can_overflow():
    assert "RepeatWhileTrue" not in code_of((project("recurrent").folder / "host.cpp").read_text()).replace(
        "using program::RepeatWhileTrue", ""
    )
    host = (project("exact").folder / "host.cpp").read_text()
    assert "Execute(forward_gather)" in host
    assert "Execute(backward_rounds)" in host


def test_sources_stay_small_on_a_large_machine():
    case = project("feedback")
    small = len((project("delayed").folder / "host.cpp").read_bytes())
    assert len((case.folder / "host.cpp").read_bytes()) < 2 * small


def test_description_and_plan_fit_the_files():
    case = project("recurrent")
    description = json.loads((case.folder / "project.json").read_text())
    assert description["format"] == "snnc project 1"
    for name, wanted in description["files"].items():
        assert hashlib.sha256((case.folder / name).read_bytes()).hexdigest() == wanted
    assert {p.name for p in case.folder.iterdir()} == {*description["files"], "project.json", "snnc.json"}
    assert plan_from_json((case.folder / "plan.json").read_text()) == case.plan
    tensors = case.open().session.tensors
    for group in ("inputs", "outputs", "parameters"):
        assert all(entry["tensor"] in tensors for entry in description[group])


def test_equal_sources_are_built_once(tmp_path):
    case = project("recurrent")
    again = emit_poplar(case.program, case.plan, tmp_path / "again")
    assert build_poplar(again) == build_poplar(case.folder)


def test_a_broken_project_is_a_build_error(tmp_path):
    shutil.copytree(project("recurrent").folder, tmp_path / "broken")
    (tmp_path / "broken" / "host.cpp").write_text("this is no C++;\n")
    with pytest.raises(BuildError, match="does not compile"):
        build_poplar(tmp_path / "broken")


def doubly_connected(delay=0, hidden=8, inputs=6):
    random = np.random.default_rng(0)
    graph = dense(random, inputs, hidden)
    join(graph, "again", linear(random, 4, hidden), "hidden", "readout", delay=delay)
    return graph


def trained(**options):
    return lower(doubly_connected(**options), loss=parse_loss("ce_count"), optimizer=Adam(), steps=STEPS)


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        (lambda: project("delayed").program, "populations"),
        (lambda: trained(hidden=9), "populations"),
        (lambda: trained(delay=2), "connections"),
        (lambda: trained(inputs=7), "sources"),
        (lambda: lower(doubly_connected(), steps=STEPS), "no backward pass"),
    ],
    ids=["names", "neurons", "delay", "inputs", "inference"],
)
def test_a_plan_of_another_program_is_refused(program, fault, tmp_path):
    plan = make_plan(trained(), machine(4), steps=STEPS, batch=BATCH)
    with pytest.raises(PlanMismatchError, match=fault):
        emit_poplar(program(), plan, tmp_path / "p")
    assert not (tmp_path / "p").exists()


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_cmake_builds_an_executable_that_trains(tmp_path):
    case = project("recurrent")
    folder = tmp_path / "project"
    shutil.copytree(case.folder, folder)
    environment = {k: v for k, v in os.environ.items() if k != "POPLAR_SDK_ENABLED"}
    given = [f"-DCMAKE_PREFIX_PATH={prefix()}", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"]  # it runs for milliseconds
    for command in (["-B", "build", *given], ["--build", "build", "-j2"]):
        result = subprocess.run(["cmake", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    batches = [case.data(seed=seed) for seed in range(3)]
    np.save(folder / "x0.npy", np.concatenate([x["x0"].swapaxes(0, 1) for x, _ in batches]))
    np.save(folder / "labels.npy", np.concatenate([y for _, y in batches]))
    train = folder / "build" / "train"
    result = subprocess.run([train, folder, "2"], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    reference = case.reference()
    for epoch in (1, 2):
        losses = [reference.train_batch(x, y, case.program.optimizer.lr) for x, y in batches]
        found = float(re.search(rf"epoch {epoch}  loss ([\d.]+)", result.stdout).group(1))
        assert found == pytest.approx(np.mean(losses), abs=2e-5)
    from safetensors.numpy import load_file

    trained = load_file(folder / "trained.safetensors")
    for name, value in reference.get_parameters().items():
        np.testing.assert_allclose(trained[name].reshape(value.shape), value, atol=1e-5)
    profile = json.loads((folder / "profile.json").read_text())
    assert profile["train_runs"] == 6
    streams = {step["name"]: step["executions"] for step in profile["emulator"]["steps"] if step["kind"] == "stream"}
    assert set(streams.values()) == {6}, "every step is sent its batch once"
    usage = subprocess.run([train, "--help"], capture_output=True, text=True, check=False)
    assert usage.returncode == 0
    assert "labels.npy" in usage.stdout
    missing = subprocess.run([train, tmp_path], capture_output=True, text=True, check=False)
    assert missing.returncode == 2
    assert "codelets.cpp" in missing.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
@pytest.mark.parametrize("emulated", [True, False])
def test_an_enabled_emulator_is_not_taken_for_the_sdk(tmp_path, emulated):
    folder, sdk = tmp_path / "project", tmp_path / "sdk"
    shutil.copytree(project("recurrent").folder, folder)
    (sdk / "lib/cmake/poplar").mkdir(parents=True)
    (sdk / "lib/cmake/poplar/poplarConfig.cmake").write_text("add_library(poplar INTERFACE)\nset(poplar_FOUND TRUE)\n")
    environment = {**os.environ, "POPLAR_SDK_ENABLED": str(prefix() if emulated else sdk)}
    subprocess.run(["cmake", "-G", "Unix Makefiles", "-B", "build"], cwd=folder, env=environment, check=True, capture_output=True)
    flags = (folder / "build/CMakeFiles/snnc_project.dir/flags.make").read_text()
    assert ("SNNC_POPLAR_SDK" in flags) == (not emulated)


def test_an_unknown_loss_is_refused():
    with pytest.raises(UnsupportedOnPoplarError, match="no Poplar template"):
        loss_context(SimpleNamespace(name="hinge"), LossShape(), batch=1, steps=1, workers=6)


def test_a_library_of_others_is_refused(tmp_path):
    (tmp_path / "a.so").write_bytes(b"no library")
    with pytest.raises(NativeLibraryError, match="SNNC-E416"):
        NativeSession(tmp_path / "a.so", tmp_path)
    with pytest.raises(NativeLibraryError, match="SNNC-E416"):
        NativeSession(prefix() / "lib" / "libpoplar.so", tmp_path)


@pytest.mark.wide
@pytest.mark.parametrize("name", ["recurrent", "lstm", "learnable"])
def test_the_emulator_counts_about_the_cycles_that_the_plan_predicts(name):
    case = project(name)
    engine = case.open()
    inputs, target = case.data()
    engine.train_batch(inputs, target, 0.01)
    counted = engine.profile()["emulator"]["cycles_last_run"]
    assert counted == pytest.approx(case.plan.cycles, rel=0.25)
