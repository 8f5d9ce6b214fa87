"""Temporary folders and files are deleted after an error, Ctrl-C and the end of a process, and after kill -9 by the next process."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import snnc
from snnc.compiler.files.temporary import (
    MARK,
    PREFIX,
    SUFFIX,
    TemporaryFolder,
    abandoned,
    abandoned_files,
    temporary_file,
    temporary_folder,
)
from snnc.data.whole_files import whole_file

HOLDS = """
import os, signal, sys
from pathlib import Path
from snnc.compiler.files.temporary import TemporaryFolder, temporary_file
folder = TemporaryFolder()
(folder.path / "large").write_bytes(bytes(1000))
with temporary_file(Path(sys.argv[1])) as (handle, beside):
    print(folder.path, beside, flush=True)
    {end}
"""
TRAINS = """
import sys, numpy as np, snnc
net = snnc.Sequential(4, snnc.Dense(3), snnc.LI())
session = snnc.compile(net, target="cpu", loss="ce_mean_membrane")
print("ready", flush=True)
x, y = np.ones((8, 3, 4), np.float32), np.zeros(8, int)
while True:
    session.fit(x, y)
"""


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    return tmp_path / "t"


def holding(end, file):
    return subprocess.run([sys.executable, "-c", HOLDS.format(end=end), str(file)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("raise SystemExit(3)", 3), ("raise KeyboardInterrupt", -signal.SIGINT)])
def test_nothing_is_left_however_a_process_ends(end, code, tmp_path, own_temporary_files):
    done = holding(end, tmp_path / "file")
    assert done.returncode == code, done.stderr
    assert len(done.stdout.split()) == 2
    assert list(own_temporary_files.iterdir()) == []
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_what_a_killed_process_left_goes_with_the_next_one(tmp_path, own_temporary_files):
    done = holding("os.kill(os.getpid(), signal.SIGKILL)", tmp_path / "file")
    folder, beside = (Path(p) for p in done.stdout.split())
    assert done.returncode == -signal.SIGKILL
    assert abandoned() == [folder]
    assert abandoned_files(tmp_path) == [beside]
    with temporary_folder() as mine, temporary_file(tmp_path / "file") as (_, own):
        assert list(own_temporary_files.iterdir()) == [mine]
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["t", own.name])


def test_what_is_in_use_or_somebody_elses_stays(tmp_path, own_temporary_files):
    other = own_temporary_files / f"{PREFIX}other"
    other.mkdir()
    (own_temporary_files / f"{PREFIX}file").touch()
    (other / "file").touch()
    away = tmp_path / "away"
    away.mkdir()
    (away / MARK).touch()
    (own_temporary_files / f"{PREFIX}link").symlink_to(away)
    linked = own_temporary_files / f"{PREFIX}linked"
    linked.mkdir()
    (linked / MARK).symlink_to(away / MARK)
    with temporary_folder() as first, temporary_folder() as second, temporary_file(tmp_path / "f") as (_, beside):
        assert first.is_dir()
        assert second.is_dir()
        assert abandoned() == []
        assert abandoned_files(tmp_path) == []
        with temporary_file(tmp_path / "f"):
            assert beside.exists()
    assert sorted(p.name for p in own_temporary_files.iterdir()) == sorted(f"{PREFIX}{n}" for n in ("other", "file", "link", "linked"))
    assert (away / MARK).exists()


def test_names_with_the_signs_of_patterns_stand_for_themselves(tmp_path):
    (tmp_path / f".xy.left{SUFFIX}").touch()
    with temporary_file(tmp_path / "x*"), temporary_file(tmp_path / "[x]y"):
        assert (tmp_path / f".xy.left{SUFFIX}").exists()


def test_a_folder_that_is_kept_is_as_any_other():
    held = TemporaryFolder()
    path = held.keep()
    del held
    assert list(path.iterdir()) == []
    assert abandoned() == []
    path.rmdir()


def test_a_child_that_forgets_the_folder_leaves_it_to_its_parent():
    held = TemporaryFolder()
    child = os.fork()
    if child == 0:
        held.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.path.is_dir()
    with (held.path / MARK).open() as mark, pytest.raises(BlockingIOError):
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    held.close()


def test_a_session_that_nobody_closes_leaves_no_folder(own_temporary_files):
    session = snnc.compile(snnc.Sequential(4, snnc.Dense(3), snnc.LI()), target="cpu")
    assert len(list(own_temporary_files.iterdir())) == 1
    session.run(np.ones((2, 1, 4), np.float32))
    del session
    assert list(own_temporary_files.iterdir()) == []


@pytest.mark.representative("15")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_training_that_is_ended_leaves_nothing_once_the_next_program_runs(end, own_temporary_files):
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + TRAINS
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(end)
    process.wait(timeout=60)
    process.stdout.close()
    if end != signal.SIGINT:
        with temporary_folder():
            pass
    assert list(own_temporary_files.iterdir()) == []


def test_a_file_that_could_not_be_finished_leaves_its_forerunner_and_nothing_else(tmp_path):
    (tmp_path / "y").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "y") as stream:
        stream.write(b"new")
        raise ZeroDivisionError
    assert (tmp_path / "y").read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t", "y"]
