"""``snnc clean`` deletes only files that certainly belong to snnc, and reports how much."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from caches import lend_objects

import snnc
from snnc.cli import main as cli
from snnc.compiler.files.temporary import MARK, SUFFIX, temporary_folder

DIGEST = "0123456789abcdef0123"
USUAL_CACHE = os.environ.get("SNNC_CACHE")
"""The setting of the test run, before a test has a cache of its own."""
KILLED = """
import os, signal, sys
from pathlib import Path
from snnc.backends.folders.project import atomic_folder
from snnc.compiler.files.temporary import TemporaryFolder
from snnc.data.whole_files import whole_file
folder = TemporaryFolder()
(folder.path / "x").write_bytes(bytes(500))
with atomic_folder(Path(sys.argv[1]) / "build") as beside, whole_file(Path(sys.argv[1]) / "y.npz") as stream:
    (beside / "z").write_bytes(bytes(300))
    stream.write(bytes(200))
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    for name in ("t", "cache", "out"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def lent(tmp_path, monkeypatch):
    """Put what all projects share into the test's cache, where it need not be compiled."""

    def lend():
        with monkeypatch.context() as patch:
            if USUAL_CACHE:
                patch.setenv("SNNC_CACHE", USUAL_CACHE)
            else:
                patch.delenv("SNNC_CACHE")
            lend_objects(tmp_path / "cache")

    return lend


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def killed(out):
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL


def clean(capsys, *arguments):
    assert cli.run_command(["clean", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_cache_that_a_program_filled_is_emptied_and_filled_again(places, capsys, lent):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    x = np.ones((3, 1, 4), np.float32)
    lent()
    with snnc.compile(net, target="cpu") as session:
        wanted = session.run(x)["output"]
        size = sum(p.stat().st_size for p in (places / "cache").rglob("*") if p.is_file())
        assert size > 100_000
        found = json.loads(clean(capsys, "--dry-run", "--json"))
        assert found["bytes"] == size
        assert names(places / "cache") != []
        assert f"{size:,} bytes" in clean(capsys)
        assert [p for p in (places / "cache").rglob("*") if p.is_file()] == []
        assert (session.run(x)["output"] == wanted).all(), "a session that runs keeps what it uses"
    lent()
    with snnc.compile(net, target="cpu") as session:
        assert (session.run(x)["output"] == wanted).all()


def test_what_has_another_name_or_is_being_built_stays(places, capsys):
    cache = places / "cache"
    kept = ["notes.txt", f"object-{DIGEST}.bak", "object-", "project-mine", ".cpu-", "known-projects"]
    for name in kept:
        (cache / name).mkdir()
    (cache / "codelets").mkdir()
    (cache / "codelets" / "mine").touch()
    (cache / f"object-{DIGEST}").mkdir()
    (cache / f"object-{DIGEST}" / "a.o").write_bytes(bytes(70))
    (cache / f"cpu-{DIGEST}").mkdir()
    (cache / f".cpu-{DIGEST}-abcdefgh").mkdir()
    outside = places / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(bytes(10))
    (cache / f"project-{DIGEST}").symlink_to(outside)
    with (cache / f".cpu-{DIGEST}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = json.loads(clean(capsys, "--cache", "--json"))
    assert found["in_use"] == 3
    assert (outside / "file").exists()
    assert names(cache) == sorted([*kept, "codelets", f"cpu-{DIGEST}", f".cpu-{DIGEST}-abcdefgh", f".cpu-{DIGEST}.lock"])
    assert names(cache / "codelets") == ["mine"]
    assert {os.path.basename(one["path"]) for one in found["removed"]} == {f"object-{DIGEST}", f"project-{DIGEST}"}


def test_what_killed_processes_left_goes_and_what_is_in_use_stays(places, capsys):
    out = places / "out"
    killed(out)
    (out / "mine.npz").touch()
    (out / ".mine").mkdir()
    assert len(names(out)) == 4
    assert len(names(places / "t")) == 1
    found = json.loads(clean(capsys, out, "--leftovers", "--dry-run", "--json"))
    assert len(found["removed"]) == 3
    assert found["bytes"] == 1000
    assert len(names(out)) == 4
    said = clean(capsys, out)
    assert "1,000 bytes freed" in said
    assert names(out) == [".mine", "mine.npz"]
    assert names(places / "t") == []
    with temporary_folder() as used:
        assert clean(capsys, out) == "0 bytes freed\n"
        assert (used / MARK).exists()


def test_the_next_compilation_into_a_folder_removes_what_a_killed_one_left_there(places):
    out = places / "out"
    killed(out)
    snnc.compile(snnc.Sequential(4, snnc.Dense(3), snnc.LI()), output=out / "build").close()
    np.savez(out / "x.npz", input=np.ones((2, 1, 4), np.float32))
    assert cli.run_command(["run", str(out / "build"), "--inputs", str(out / "x.npz"), "--outputs", str(out / "y.npz")]) == 0
    assert names(out) == ["build", "x.npz", "y.npz"]
    assert not [p for p in out.rglob("*") if p.name == MARK or p.name.endswith(SUFFIX)]


def test_a_folder_that_is_none_is_refused(places, capsys):
    (places / "file").touch()
    for wrong in ("none", "file"):
        assert cli.run_command(["clean", str(places / wrong)]) == 2
        assert "SNNC-E574" in capsys.readouterr().err
