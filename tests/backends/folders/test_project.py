"""Project folders are written completely or not at all."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from snnc.backends.folders.project import DiskFullError, ForeignFolderError, OutputFolderError, atomic_folder, write_file

FILES = {"project.json": b"{}", "a/b.txt": b"text"}


def write_project(folder, files):
    with atomic_folder(folder) as beside:
        for name, content in files.items():
            write_file(beside / name, (content,))
    return folder


def everything(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def test_all_files_are_written(tmp_path):
    folder = write_project(tmp_path / "deep" / "project", FILES)
    assert everything(folder) == ["a", "a/b.txt", "project.json", "snnc.json"]
    assert (folder / "a" / "b.txt").read_bytes() == b"text"
    assert everything(tmp_path / "deep") == ["project", *(f"project/{p}" for p in everything(folder))]


def test_an_older_project_is_replaced_whole(tmp_path):
    write_project(tmp_path / "p", {**FILES, "old": b""})
    write_project(tmp_path / "p", FILES)
    assert everything(tmp_path) == ["p", "p/a", "p/a/b.txt", "p/project.json", "p/snnc.json"]


def test_an_empty_folder_may_be_there_already(tmp_path):
    (tmp_path / "p").mkdir()
    write_project(tmp_path / "p", FILES)
    assert (tmp_path / "p" / "project.json").exists()


@pytest.mark.parametrize("make", [lambda p: (p.mkdir(), (p / "thesis.txt").write_text("!")), lambda p: p.write_text("file")])
def test_what_is_no_project_is_left_alone(tmp_path, make):
    make(tmp_path / "p")
    before = everything(tmp_path)
    with pytest.raises(ForeignFolderError, match="SNNC-E414"):
        write_project(tmp_path / "p", FILES)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, DiskFullError), (errno.EACCES, OutputFolderError), (errno.EROFS, OutputFolderError)]
)
def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch, number, kind):
    write_project(tmp_path / "old", FILES)
    before = everything(tmp_path)
    open_file = Path.open

    def fail(self, *arguments, **options):
        if self.name == "b.txt":
            raise OSError(number, os.strerror(number))
        return open_file(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", fail)
    for name in ("new", "old"):
        with pytest.raises(kind):
            write_project(tmp_path / name, FILES)
    assert everything(tmp_path) == before


def test_an_unwritable_place_is_an_error_with_a_code(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputFolderError, match="SNNC-E412"):
        write_project(tmp_path / "file" / "p", FILES)


def test_a_failed_rename_brings_the_old_project_back(tmp_path, monkeypatch):
    write_project(tmp_path / "p", FILES)
    rename = Path.rename
    monkeypatch.setattr("snnc.compiler.files.exchange._exchanged", lambda *_: errno.ENOSYS)  # as where folders cannot change places

    def fail(self, target):
        if Path(target) == tmp_path / "p" and self.parent.name.startswith(".p.") and ".old." not in self.parent.name:
            raise OSError(errno.EIO, "broken")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OutputFolderError):
        write_project(tmp_path / "p", {"project.json": b"new"})
    assert (tmp_path / "p" / "project.json").read_bytes() == b"{}"
    assert everything(tmp_path) == ["p", "p/a", "p/a/b.txt", "p/project.json", "p/snnc.json"]


def test_a_file_is_written_piece_by_piece_and_its_digest_is_of_the_whole(tmp_path):
    pieces = (b"one", memoryview(b"two"), b"")
    assert write_file(tmp_path / "deep" / "f", pieces) == hashlib.sha256(b"onetwo").hexdigest()
    assert (tmp_path / "deep" / "f").read_bytes() == b"onetwo"
