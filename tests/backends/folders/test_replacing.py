"""When a folder is replaced, files that snnc did not write are kept."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from snnc.backends.folders.folder_lock import FolderInUseError, check_free, locked
from snnc.backends.folders.manifest import BEST, LOCK, MANIFEST, TRAINED, read_manifest, written_files
from snnc.backends.folders.project import ForeignFolderError, OutputFolderError, atomic_folder, check_replaceable
from snnc.compiler.files import exchange

FILES = {"project.json": '{"format": "snnc project 1", "files": {}}', "host.cpp": "int main() {}", "model/graph.json": "{}"}


def write(folder, files=None, **options):
    with atomic_folder(folder, **options) as beside:
        for name, text in (FILES if files is None else files).items():
            place = beside / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    return folder


def texts(folder):
    """Path -> content of everything below that is no folder with something in it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_text()
        elif not any(path.iterdir()):
            found[name] = "empty"
    found.pop(MANIFEST, None)
    return found


def test_the_list_names_every_file_with_its_digest(tmp_path):
    folder = write(tmp_path / "p")
    data = json.loads((folder / MANIFEST).read_text())
    assert data["format"] == "snnc folder 1"
    assert read_manifest(folder) == data["files"] == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in FILES.items()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"format": "snnc folder 1"}',
        '{"format": "snnc folder 1", "files": []}',
        '{"format": "other", "files": {}}',
        '{"format": "snnc folder 1", "files": {"a": 1}}',
        '{"format": "snnc folder 1", "files": {"a": "abc"}}',
        json.dumps({"format": "snnc folder 1", "files": {"../a": "0" * 64}}),
        json.dumps({"format": "snnc folder 1", "files": {"/a": "0" * 64}}),
        "[" * 100_000,
    ],
)
def test_a_damaged_list_makes_no_folder_snncs_own(tmp_path, text):
    (tmp_path / MANIFEST).write_text(text)
    (tmp_path / "thesis.tex").write_text("!")
    assert read_manifest(tmp_path) is None
    with pytest.raises(ForeignFolderError, match="SNNC-E414"):
        write(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "!"


@pytest.mark.parametrize(
    "files",
    [
        {"project.json": "{}"},
        {"project.json": '{"name": "an Angular app", "files": {}}'},
        {"project.json": '{"format": "snnc project 1"}'},
        {"model/options.json": "{}"},
        {"model/options.json": '{"version": 1, "target": "cpu"}'},
        {"model/options.json": '{"version": 1, "target": "cpu"}', "model/graph.json": '{"vertices": []}', "model/arrays.npz": ""},
    ],
)
def test_common_names_of_other_tools_make_no_folder_snncs_own(tmp_path, files):
    folder = tmp_path / "theirs"
    for name, text in {**files, "notes.txt": "!"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    before = texts(folder)
    with pytest.raises(ForeignFolderError, match="SNNC-E414"):
        write(folder)
    assert texts(folder) == before


@pytest.mark.parametrize("kind", ["emitted", "model"])
def test_a_project_without_a_list_is_known_where_its_format_is(tmp_path, kind):
    folder = tmp_path / "p"
    (folder / "model").mkdir(parents=True)
    if kind == "emitted":
        own = {"host.cpp": hashlib.sha256(b"old").hexdigest()}
        (folder / "host.cpp").write_text("old")
        (folder / "project.json").write_text(json.dumps({"format": "snnc project 1", "files": own}))
    else:
        (folder / "model" / "options.json").write_text('{"version": 1, "target": "reference"}')
        (folder / "model" / "graph.json").write_text('{"nodes": [], "edges": []}')
        (folder / "model" / "arrays.npz").write_text("")
    (folder / "notes.txt").write_text("mine")
    assert written_files(folder) is not None
    write(folder)
    assert texts(folder) == {**FILES, "notes.txt": "mine"}


def test_files_that_snnc_did_not_write_stay_where_they_are(tmp_path):
    folder = write(tmp_path / "p", {**FILES, "old.cpp": "snnc's"})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "data").write_text("far away")
    (folder / "build" / "deep").mkdir(parents=True)
    (folder / "build" / "deep" / "a.o").write_text("object")
    (folder / "empty").mkdir()
    (folder / "model" / "notes.txt").write_text("mine")
    (folder / "link").symlink_to(outside)
    (folder / "broken").symlink_to("nowhere")
    (folder / "build" / "deep" / "a.o").chmod(0o400)
    write(folder)
    kept = {"build/deep/a.o": "object", "empty": "empty", "model/notes.txt": "mine", "link": f"-> {outside}", "broken": "-> nowhere"}
    assert texts(folder) == {**FILES, **kept}
    assert texts(outside) == {"data": "far away"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["outside", "p"]
    write(folder)
    assert texts(folder) == {**FILES, **kept}


def test_files_that_somebody_has_changed_are_put_aside_and_named(tmp_path):
    folder = write(tmp_path / "p")
    (folder / "host.cpp").write_text("int main() { return 1; }")
    (folder / "model" / "graph.json").unlink()
    (folder / "model" / "graph.json").symlink_to("/etc/hostname")
    with pytest.warns(UserWarning, match=r"2 changed files .*before-1/host\.cpp"):
        write(folder)
    aside = {"before-1/host.cpp": "int main() { return 1; }", "before-1/model/graph.json": "-> /etc/hostname"}
    assert texts(folder) == {**FILES, **aside}


def test_a_file_in_the_place_of_a_new_one_is_put_aside(tmp_path):
    folder = write(tmp_path / "p", {"project.json": FILES["project.json"]})
    (folder / "host.cpp").write_text("mine")
    (folder / "model").write_text("a file, no folder")
    write(folder)
    assert texts(folder) == {**FILES, "before-1/host.cpp": "mine", "before-1/model": "a file, no folder"}


def test_trained_weights_are_put_aside_every_time_and_the_message_says_where(tmp_path):
    folder = write(tmp_path / "p")
    for number in (1, 2):
        (folder / TRAINED).write_text(f"weights {number}")
        with pytest.warns(UserWarning, match=f"before-{number}/{TRAINED}"):
            write(folder)
        assert not (folder / TRAINED).exists()
    assert texts(folder) == {**FILES, f"before-1/{TRAINED}": "weights 1", f"before-2/{TRAINED}": "weights 2"}


def test_the_best_weights_are_put_aside_with_the_last(tmp_path):
    folder = write(tmp_path / "p")
    for name in (TRAINED, BEST):
        (folder / name).write_text(name)
    with pytest.warns(UserWarning, match=f"before-1/{BEST} and .*before-1/{TRAINED}"):
        write(folder)
    assert texts(folder) == {**FILES, f"before-1/{TRAINED}": TRAINED, f"before-1/{BEST}": BEST}


def test_trained_weights_are_deleted_only_when_that_is_asked_for_and_then_said(tmp_path):
    folder = write(tmp_path / "p")
    (folder / TRAINED).write_text("weights")
    (folder / BEST).write_text("weights")
    (folder / "host.cpp").write_text("mine")
    with (
        pytest.warns(UserWarning, match="changed files of the older project were moved"),
        pytest.warns(UserWarning, match="trained weights .* are deleted"),
    ):
        write(folder, keep_trained=False)
    assert texts(folder) == {**FILES, "before-1/host.cpp": "mine"}


def test_what_snnc_makes_again_goes_without_a_word(tmp_path):
    folder = write(tmp_path / "p")
    for name in ("model/profile.json", "model/recording.npz", "model/.trained.safetensors.part", LOCK):
        (folder / name).write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(folder)
    assert texts(folder) == FILES


def test_a_project_is_replaced_where_folders_cannot_change_places_in_one_step(tmp_path, monkeypatch):
    folder = write(tmp_path / "p")
    (folder / "mine").write_text("!")
    monkeypatch.setattr(exchange, "_exchanged", lambda *_: errno.ENOSYS)
    write(folder, {**FILES, "host.cpp": "new"})
    assert texts(folder) == {**FILES, "host.cpp": "new", "mine": "!"}
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


def test_a_file_that_cannot_be_kept_leaves_everything_as_it_was(tmp_path, monkeypatch):
    folder = write(tmp_path / "p")
    (folder / "mine").write_text("!")

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", fail)
    monkeypatch.setattr("shutil.copy2", fail)
    with pytest.raises(OutputFolderError, match="SNNC-E413"):
        write(folder, {"project.json": "{}"})
    assert texts(folder) == {**FILES, "mine": "!"}
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


def test_a_folder_behind_a_link_is_replaced_and_the_link_stays(tmp_path):
    write(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", {**FILES, "host.cpp": "new"})
    assert (tmp_path / "link").is_symlink()
    assert texts(tmp_path / "real")["host.cpp"] == "new"


def test_a_read_only_folder_is_refused(tmp_path, monkeypatch):
    folder = write(tmp_path / "p")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # who runs the tests may write everywhere
    with pytest.raises(OutputFolderError, match="read-only"):
        write(folder, {"project.json": "{}"})
    assert texts(folder) == FILES


HOLD = """
import sys
from pathlib import Path
from snnc.backends.folders.folder_lock import locked
with locked(Path(sys.argv[1]), "trains"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of a project."""
    folder = write(tmp_path / "p")
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield folder, process
        process.kill()


def test_a_folder_in_which_another_process_works_is_refused_and_the_message_names_it(holder):
    folder, process = holder
    for attempt in (lambda: check_replaceable(folder), lambda: write(folder), lambda: locked(folder, "trains").__enter__()):
        with pytest.raises(FolderInUseError, match=rf"SNNC-E417: .*process {process.pid} on .* trains"):
            attempt()
    assert {name: text for name, text in texts(folder).items() if name != LOCK} == FILES


def test_a_killed_process_holds_nothing(holder):
    folder, process = holder
    process.kill()
    process.wait()
    assert (folder / LOCK).exists()
    check_free(folder)
    with locked(folder, "trains"):
        pass
    assert texts(folder) == FILES


def test_a_lock_whose_folder_was_replaced_or_deleted_ends_quietly(tmp_path):
    folder = write(tmp_path / "p")
    with locked(folder, "trains"):
        (folder / LOCK).unlink()
        (folder / LOCK).write_text("another's")
    assert (folder / LOCK).read_text() == "another's"


@pytest.mark.parametrize(("failing", "left"), [(0, ("one", "two")), (1, ("one", "two")), (2, (None, "one"))])
def test_the_error_of_a_rename_is_raised_whichever_fails(tmp_path, monkeypatch, failing, left):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder, text in ((first, "one"), (second, "two")):
        folder.mkdir()
        (folder / "file").write_text(text)
    rename, calls = Path.rename, []

    def fails_once(path, target):
        calls.append(path)
        if len(calls) == failing + 1:
            raise OSError(errno.EACCES, "no permission")
        return rename(path, target)

    monkeypatch.setattr(exchange, "_exchanged", lambda *_: errno.ENOSYS)
    monkeypatch.setattr(Path, "rename", fails_once)
    with pytest.raises(PermissionError, match="no permission"):
        exchange.exchange(first, second)
    assert tuple((f / "file").read_text() if f.exists() else None for f in (first, second)) == left
    assert len([*tmp_path.iterdir()]) == 2, "what could not be renamed stays in its folder"
