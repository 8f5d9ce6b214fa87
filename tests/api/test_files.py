"""Data files are read without trust; outputs appear whole or not at all."""

import os
import pickle

import numpy as np
import pytest

from snnc import errors
from snnc.backends.project import OutputFolderError, whole_folder
from snnc.data import pick, read_arrays, write_arrays
from snnc.files import whole_file
from snnc.options import OPTIONS_FILE as MARK


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


def test_a_missing_array_is_named_with_what_is_there(tmp_path):
    with pytest.raises(errors.MissingArrayError, match=r"'x'.*holds y"):
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
    with pytest.raises(OutputFolderError), whole_folder(tmp_path / "file" / "folder"):
        pass


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    place = tmp_path / "project"
    with pytest.raises(RuntimeError), whole_folder(place) as folder:
        (folder / "half").touch()
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with whole_folder(place) as folder:
        (folder / "model").mkdir()
        (folder / MARK).touch()
        assert not place.exists()
    assert (place / MARK).exists()


def test_a_project_is_replaced_and_anything_else_is_left_alone(tmp_path):
    place = tmp_path / "project"
    for version in ("one", "two"):
        with whole_folder(place) as folder:
            (folder / "model").mkdir()
            (folder / MARK).write_text(version)
    assert (place / MARK).read_text() == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["project"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(OutputFolderError, match="not a project"), whole_folder(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine" / "thesis.tex").exists()
