"""Data files are read without trust; outputs are written completely or not at all."""

import os
import pickle
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import snnc
from snnc import errors
from snnc.backends.folders.project import OutputFolderError, atomic_folder
from snnc.cli import main as cli
from snnc.data.arrays import pick, read_arrays, write_arrays
from snnc.data.whole_files import whole_file
from snnc.options.compile_options import OPTIONS_FILE as MARK


def test_arrays_come_back_as_they_were_written_whatever_their_names(tmp_path):
    arrays = {"file": np.arange(3), "allow_pickle": np.float32(2.5), "a/b": np.ones((2, 0, 3), np.uint8)}
    write_arrays(tmp_path / "x.npz", arrays)
    found = read_arrays(tmp_path / "x.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]


def test_a_written_file_has_the_rights_that_other_files_have(tmp_path):
    write_arrays(tmp_path / "x.npz", {})
    (tmp_path / "y").touch()
    assert (tmp_path / "x.npz").stat().st_mode == (tmp_path / "y").stat().st_mode


def truncated(path):
    np.savez(path, x=np.zeros(1000))
    path.write_bytes(path.read_bytes()[:300])


def flipped(path):
    np.savez_compressed(path, x=np.arange(1000))
    data = bytearray(path.read_bytes())
    data[60:90] = bytes(30)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda p: None, errors.DataFileError),
        (lambda p: p.mkdir(), errors.DataFileError),
        (lambda p: p.write_bytes(b""), errors.DataFileError),
        (lambda p: p.write_text("not an archive"), errors.DataFileError),
        (truncated, errors.DataFileError),
        (flipped, errors.DataFileError),
        (lambda p: np.save(p.open("wb"), np.zeros(3)), errors.DataFileError),
        (lambda p: np.savez(p, x=np.array([{}], dtype=object)), errors.PickledArrayError),
        (lambda p: p.write_bytes(pickle.dumps({"x": 1})), errors.PickledArrayError),
    ],
)
def test_bad_data_files_are_refused_with_a_code(tmp_path, write, error):
    path = tmp_path / "x.npz"
    write(path)
    with pytest.raises(error):
        read_arrays(path)


def archive(path, header, data=b"", method=zipfile.ZIP_STORED, name="x.npy"):
    """An npz archive of one array with a header of one's own."""
    head = header if isinstance(header, bytes) else repr(header).encode()
    text = head + b" " * (-(len(head) + 11) % 64) + b"\n"
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(name, b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data)


def declared(path, shape, dtype="<f4", **options):
    archive(path, {"descr": dtype, "fortran_order": False, "shape": shape}, **options)


def grown(path):
    """The archive's directory says that a stored array of 400 bytes is one of 4 GB."""
    declared(path, (100,), data=bytes(400))
    data = bytearray(path.read_bytes())
    size = path.stat().st_size
    at = data.index(b"PK\x01\x02")
    assert int.from_bytes(data[at + 24 : at + 28], "little") < size
    data[at + 24 : at + 28] = (0xF0000000).to_bytes(4, "little")
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda p: declared(p, (60_000_000_000_000,)), errors.ArraySizeError),
        (lambda p: declared(p, (1 << 62, 1 << 62)), errors.ArraySizeError),
        (lambda p: declared(p, (-4,)), errors.ArraySizeError),
        (lambda p: declared(p, (4,), data=bytes(12)), errors.ArraySizeError),
        (lambda p: declared(p, (4,), data=bytes(20)), errors.ArraySizeError),
        (lambda p: declared(p, (4,), "|O", data=bytes(32)), errors.PickledArrayError),
        (lambda p: declared(p, (4,), [("a", "<f4")], data=bytes(15)), errors.ArraySizeError),
        (lambda p: declared(p, (4,), data=bytes(16), method=zipfile.ZIP_LZMA), errors.DataFileError),
        (lambda p: archive(p, b"{" * 5000), errors.DataFileError),
        (lambda p: archive(p, b"-" * 9000 + b"1"), errors.DataFileError),
        (lambda p: archive(p, b"__import__('os').getcwd()"), errors.DataFileError),
        (grown, errors.ArraySizeError),
    ],
)
def test_what_an_array_declares_is_checked_before_memory_is_taken(tmp_path, write, error):
    write(tmp_path / "x.npz")
    with pytest.raises(error, match=r"x\.npz"):
        read_arrays(tmp_path / "x.npz")["x"]


def test_two_arrays_of_one_name_are_refused(tmp_path):
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        warnings.simplefilter("ignore")
        for number in (1, 2):
            with file.open("x.npy", "w") as member:
                np.save(member, np.full(3, number))
    with pytest.raises(errors.DataFileError, match="two of its arrays have the same name"):
        read_arrays(tmp_path / "x.npz")


def test_an_array_larger_than_this_machine_is_refused_when_it_is_asked_for(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", x=np.zeros(1000, np.float32), y=np.zeros(10, np.float32))
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": 500}.get)
    found = read_arrays(tmp_path / "x.npz")
    assert found["y"].shape == (10,)
    with pytest.raises(errors.MemoryShortError, match=r"'x'.*4,000 bytes, but this machine has 500"):
        found["x"]


@pytest.fixture
def asked(monkeypatch):
    """Bytes of the arrays that were read."""
    found = []
    read = np.lib.format.read_array

    def noted(stream, **options):
        array = read(stream, **options)
        found.append(array.nbytes)
        return array

    monkeypatch.setattr(np.lib.format, "read_array", noted)
    return found


def test_only_arrays_that_are_asked_for_are_read(tmp_path, asked):
    np.savez(tmp_path / "x.npz", x=np.zeros(10, np.uint8), unused=np.zeros(1000))
    found = read_arrays(tmp_path / "x.npz")
    assert (list(found), len(found), "unused" in found, "y" in found) == (["x", "unused"], 2, True, False)
    assert found["x"] is found["x"]
    assert asked == [10]


@pytest.mark.parametrize("command", ["run", "train", "verify", "compile", "ann2snn"])
def test_commands_read_no_array_that_nobody_asks_for(tmp_path, asked, command, capsys):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    snnc.compile(net, steps=5, batch=2, loss="ce_count", output=tmp_path / "p").close()
    asked.clear()
    whole = {"unused": np.zeros(123_456, np.uint8)}
    samples = {"x": np.zeros((2, 5, 4), np.float32), "y": np.zeros(2, np.int64)} | whole
    np.savez(tmp_path / "samples.npz", **samples)
    np.savez(tmp_path / "x.npz", x=np.zeros((5, 2, 4), np.float32), **whole)
    rectified = Path(__file__).parents[2] / "corpus" / "ann_mlp_relu_ts"
    np.savez(tmp_path / "images.npz", x=next(iter(np.load(f"{rectified}.npz").values())), **whole)
    lines = {
        "run": [tmp_path / "p", "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"],
        "train": [tmp_path / "p", "--data", tmp_path / "samples.npz"],
        "verify": [tmp_path / "p", "--inputs", tmp_path / "x.npz"],
        "compile": [tmp_path / "p", "--target", "gc200", "--steps", "5", "--data", tmp_path / "samples.npz", "-o", tmp_path / "q"],
        "ann2snn": [f"{rectified}.onnx", "--ann2snn", "--calibration", tmp_path / "images.npz"],
    }
    name = "check" if command == "ann2snn" else command
    code = cli.run_command([name, *map(str, lines[command])])
    assert code == (2 if command == "run" else 0), capsys.readouterr().err  # an array that is no input is refused, unread
    assert 123_456 not in asked


def test_a_missing_array_is_named_with_what_is_there(tmp_path):
    with pytest.raises(errors.MissingArrayError, match=r"'x'.*contains y"):
        pick({"y": np.zeros(1)}, "x", tmp_path)


def test_a_file_stays_as_it_was_when_writing_fails(tmp_path):
    path = tmp_path / "x.npz"
    path.write_text("old")
    with pytest.raises(errors.OutputFileError, match="no space"), whole_file(path) as stream:
        stream.write(b"half")
        raise OSError(28, os.strerror(28))
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_one_coded_error():
    with pytest.raises(errors.OutputFileError, match="no space"):
        write_arrays(__import__("pathlib").Path("/dev/full"), {"x": np.zeros(100_000)})


def test_a_place_under_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(errors.OutputFileError):
        write_arrays(tmp_path / "file" / "x.npz", {})
    with pytest.raises(OutputFolderError), atomic_folder(tmp_path / "file" / "folder"):
        pass


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    place = tmp_path / "project"
    with pytest.raises(RuntimeError), atomic_folder(place) as folder:
        (folder / "half").touch()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(place) as folder:
        (folder / "model").mkdir()
        (folder / MARK).touch()
        assert not place.exists()
    assert (place / MARK).exists()


def test_a_project_is_replaced_and_anything_else_is_left_alone(tmp_path):
    place = tmp_path / "project"
    for version in ("one", "two"):
        with atomic_folder(place) as folder:
            (folder / "model").mkdir()
            (folder / MARK).write_text(version)
    assert (place / MARK).read_text() == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["project"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(OutputFolderError, match="not a project"), atomic_folder(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_an_archive_is_read_while_another_thread_disturbs_the_parser(tmp_path, monkeypatch):
    """In some versions of CPython, `ast.literal_eval`, which NumPy uses for headers, fails if several threads call it."""
    np.savez(tmp_path / "x.npz", x=np.arange(3))
    parse, calls = np.lib.format.read_array, []

    def disturbed(stream, **options):
        calls.append(stream.read(20))
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        stream.seek(0)
        return parse(stream, **options)

    monkeypatch.setattr(np.lib.format, "read_array", disturbed)
    assert read_arrays(tmp_path / "x.npz")["x"].tolist() == [0, 1, 2]
    assert calls == 3 * [calls[0]]
