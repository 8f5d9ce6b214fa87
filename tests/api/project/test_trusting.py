"""The program of a project is executed only if this user compiled or allows it; its data must be those that were compiled."""

import json
import os
import pty
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

import snnc
from snnc import errors
from snnc.backends.folders.manifest import MANIFEST, write_manifest
from snnc.cli import main as cli
from snnc.driver.compiling import compile_to_folder
from snnc.options.compile_options import options
from snnc.project import known_projects
from snnc.project.known_projects import is_known

INPUT = np.ones((5, 2, 4), np.float32)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def compiled(folder, target="cpu", **given):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    compile_to_folder(net.graph(), options(target, steps=5, batch=2, **given), folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("made") / "p")


@pytest.fixture(scope="module")
def made_for_tiles(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("made") / "p", "gc200")


@pytest.fixture
def project(tmp_path, made):
    """A copy of a project that was compiled by this user."""
    shutil.copytree(made, tmp_path / "p")
    known_projects.remember(tmp_path / "p")
    return tmp_path / "p"


def outputs(folder, **given):
    with snnc.open(folder, **given) as session:
        return session.run(INPUT)["output"]


def changed(path):
    path.write_text(path.read_text() + "\n// mine\n")


def forget(state):
    shutil.rmtree(state)


def run(project, *more):
    np.savez(project.parent / "x.npz", x=INPUT)
    return cli.run_command(
        ["run", str(project), "--inputs", str(project.parent / "x.npz"), "--outputs", str(project.parent / "y.npz"), *more]
    )


def test_what_this_user_compiled_opens_also_from_another_place(project, tmp_path):
    expected = outputs(project)
    shutil.copytree(project, tmp_path / "copy")
    project.rename(tmp_path / "moved")
    for name in ("copy", "moved"):
        np.testing.assert_array_equal(outputs(tmp_path / name), expected)


@pytest.mark.parametrize("target", ["cpu", "gc200", "cuda", "poptorch"])
def test_what_snnc_emits_is_known_as_such_and_asked_for_once(tmp_path, state, target, monkeypatch):
    monkeypatch.setenv("SNNC_CUDA_ON_HOST", "1")
    project = compiled(tmp_path / "p", target)
    forget(state)
    with pytest.raises(errors.UntrustedProjectError, match=r"compiled by somebody else.*--trust.*trust=True"):
        snnc.open(project)
    assert not state.exists()
    snnc.driver.trusting.check_trusted(project, True)
    snnc.driver.trusting.check_trusted(project, False)


def test_trust_is_remembered(project, state):
    expected = outputs(project)
    forget(state)
    assert run(project) == 2
    assert run(project, "--trust") == 0
    assert run(project) == 0
    np.testing.assert_array_equal(outputs(project), expected)


@pytest.mark.parametrize("command", ["train", "verify"])
def test_every_command_that_executes_asks(tmp_path, state, command, capsys):
    project = compiled(tmp_path / "p", loss="ce_count")
    forget(state)
    np.savez(tmp_path / "d.npz", x=np.ones((2, 5, 4), np.float32), y=np.zeros(2, np.int64))
    line = [command, str(project), *(["--data", str(tmp_path / "d.npz")] if command == "train" else ["--samples", "2", "--steps", "5"])]
    assert cli.run_command(line) == 2
    assert "SNNC-E445" in capsys.readouterr().err
    assert cli.run_command([*line, "--trust"]) == 0


@pytest.mark.parametrize("command", ["check", "inspect", "convert", "compile"])
def test_commands_that_read_the_model_alone_do_not_ask(tmp_path, made_for_tiles, command):
    project = shutil.copytree(made_for_tiles, tmp_path / "p")
    rest = {
        "convert": [tmp_path / "m.onnx"],
        "compile": ["--target", "reference", "-o", tmp_path / "q"],
        "inspect": ["-o", tmp_path / "r.html"],
    }
    assert cli.run_command([command, str(project), *map(str, rest.get(command, []))]) == 0


def test_the_reference_executes_nothing_and_does_not_ask(tmp_path, state):
    project = compiled(tmp_path / "p", "reference")
    forget(state)
    assert outputs(project).shape == (5, 2, 2)


def test_trust_is_for_projects(tmp_path, capsys):
    assert run(tmp_path / "none.onnx", "--trust") == 2
    assert "SNNC-E520: --trust is for compiled projects" in capsys.readouterr().err


@pytest.mark.representative("network.cpp", "neurons.hpp")
@pytest.mark.parametrize("file", ["network.cpp", "neurons.hpp", "dense.cpp"])
def test_sources_that_were_changed_are_refused_unless_trusted(project, file):
    expected = outputs(project)
    changed(project / file)
    with pytest.raises(errors.ChangedSourcesError, match=rf"{file} of the project .* is not as compiled"):
        snnc.open(project)
    np.testing.assert_array_equal(outputs(project, trust=True), expected)
    with pytest.raises(errors.ChangedSourcesError):  # another change would go unseen
        snnc.open(project)


def test_a_list_of_files_that_names_other_sources_does_not_help(project):
    changed(project / "network.cpp")
    write_manifest(project)
    with pytest.raises(errors.ChangedSourcesError, match=r"network\.cpp is not what this snnc emits for its model"):
        snnc.open(project)


@pytest.mark.parametrize("what", ["a source more", "other tables"])
def test_a_project_of_somebody_else_holds_exactly_what_snnc_emits(project, what):
    if what == "a source more":
        (project / "vectors.h").write_text("int evil();\n")
    else:
        data = bytearray((project / "tables.bin").read_bytes())
        data[-1] ^= 1
        (project / "tables.bin").write_bytes(data)
    write_manifest(project)
    with pytest.raises(errors.ChangedSourcesError, match=r"vectors\.h|tables\.bin"):
        snnc.open(project)


@pytest.mark.wide
def test_a_terminal_is_asked(project, state):
    """Answers no, then yes, then there is no question."""
    forget(state)
    np.savez(project.parent / "x.npz", x=INPUT)
    line = [
        sys.executable,
        "-m",
        "snnc",
        "run",
        str(project),
        "--inputs",
        str(project.parent / "x.npz"),
        "--outputs",
        str(project.parent / "y.npz"),
    ]
    for answer, code in ((b"n\n", 2), (b"y\n", 0), (b"", 0)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(line, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs)
        os.write(ours, answer)
        assert process.wait(120) == code
        said = os.read(ours, 1 << 16)
        assert (b"Compile and execute it?" in said) is bool(answer)
        os.close(theirs)
        os.close(ours)


@pytest.mark.parametrize("target", ["cpu", "gc200", "reference"])
def test_numbers_that_were_exchanged_are_refused_whoever_trusts(tmp_path, target):
    project = compiled(tmp_path / "p", target)
    listed = json.loads((project / MANIFEST).read_text())["files"]
    names = [n for n in listed if n.endswith((".safetensors", ".bin", ".npz", ".json"))]
    assert ("weights.safetensors" in names) is (target != "reference")
    for name in names:
        kept = (project / name).read_bytes()
        for content in (kept[: len(kept) // 2], b"", kept[:-1] + bytes([kept[-1] ^ 1]), kept + b" "):
            (project / name).write_bytes(content)
            with pytest.raises(errors.DamagedProjectError, match=rf"{name} of the project .* is not as compiled"):
                snnc.open(project, trust=True)
        (project / name).unlink()
        with pytest.raises((errors.DamagedProjectError, errors.ProjectFolderError)):
            snnc.open(project, trust=True)
        (project / name).write_bytes(kept)
    assert outputs(project).shape == (5, 2, 2)


@pytest.mark.parametrize("content", [None, b"", b"{", b"[" * 100_000, b'{"format": "snnc folder 1", "files": {"../x.cpp": "0"}}'])
def test_a_project_without_its_list_is_refused(project, content):
    (project / MANIFEST).unlink()
    if content is not None:
        (project / MANIFEST).write_bytes(content)
    with pytest.raises(errors.ProjectFolderError, match="list of its files"):
        snnc.open(project, trust=True)


def test_a_project_of_a_newer_version_is_refused_as_such(project):
    text = (project / MANIFEST).read_text()
    (project / MANIFEST).write_text(text.replace("snnc folder 1", "snnc folder 2"))
    with pytest.raises(errors.NewerProjectError, match=r"'snnc folder 2'.*reads 'snnc folder 1'.*newer snnc"):
        snnc.open(project)


@pytest.mark.parametrize("place", ["", "model", "network.cpp", "weights.safetensors", MANIFEST])
def test_what_others_can_write_is_refused_with_what_to_do(project, place):
    path = project / place
    path.chmod(path.stat().st_mode | stat.S_IWOTH)
    with pytest.raises(errors.UnsafeProjectError, match=r"can be written by everybody; .*chmod go-w.*--trust"):
        snnc.open(project)
    assert outputs(project, trust=True).shape == (5, 2, 2)
    path.chmod(path.stat().st_mode & ~stat.S_IWOTH)
    assert outputs(project).shape == (5, 2, 2)


def test_a_folder_above_in_which_others_can_put_another_is_refused(project, tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(errors.UnsafeProjectError, match="can be written by everybody"):
        snnc.open(project)
    tmp_path.chmod(0o1777)
    assert outputs(project).shape == (5, 2, 2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("open_folder", ["user", "top"])
def test_a_folder_above_that_others_can_write_is_refused_whoever_owns_the_folders(tmp_path, open_folder):
    user = tmp_path / "top" / "user"
    user.mkdir(parents=True)
    project = compiled(user / "p")
    os.chown(user, 12345, 12345)
    assert outputs(project).shape == (5, 2, 2)
    {"user": user, "top": tmp_path / "top"}[open_folder].chmod(0o777)
    with pytest.raises(errors.UnsafeProjectError, match=f"{open_folder}' can be written by everybody"):
        snnc.open(project)


def test_a_link_in_a_project_is_refused_and_one_to_it_is_followed(project, tmp_path):
    (tmp_path / "latest").symlink_to(project)
    assert outputs(tmp_path / "latest").shape == (5, 2, 2)
    (project / "network.cpp").rename(tmp_path / "elsewhere.cpp")
    (project / "network.cpp").symlink_to(tmp_path / "elsewhere.cpp")
    with pytest.raises(errors.UnsafeProjectError, match=r"network\.cpp' is a link"):
        snnc.open(project)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["", "model", "network.cpp", MANIFEST])
def test_what_belongs_to_another_user_is_refused(project, place):
    os.chown(project / place, 12345, 12345)
    with pytest.raises(errors.UnsafeProjectError, match=r"belongs to the user 12345; .*chown"):
        snnc.open(project)


def test_a_project_is_closed_to_others_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        project = compiled(tmp_path / "p")
    finally:
        os.umask(old)
    assert not [p for p in (project, *project.rglob("*")) if p.stat().st_mode & 0o022]
    assert outputs(project).shape == (5, 2, 2)


@pytest.mark.parametrize("harm", ["open", "link", "other's"])
def test_a_record_that_others_could_have_written_counts_for_nothing(project, state, harm, tmp_path):
    file = state / "snnc" / "known-projects"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert is_known(project)
    if harm == "open":
        file.chmod(0o666)
    elif harm == "link":
        file.parent.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(file, 12345, -1)
    else:
        pytest.skip("only root can give files away")
    assert not is_known(project)


def test_a_home_that_cannot_be_written_leaves_the_record_to_the_cache(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "cache"))
    project = compiled(tmp_path / "p", "reference")
    assert is_known(project)
    assert (tmp_path / "cache" / "known-projects").exists()


def test_the_record_stays_small(project, monkeypatch, state):
    monkeypatch.setattr(known_projects, "MAX_PROJECTS", 4)
    file = state / "snnc" / "known-projects"
    for number in range(10):
        (project / MANIFEST).write_text(str(number))
        known_projects.remember(project)
        assert is_known(project)
        assert len(file.read_text().splitlines()) <= 4
