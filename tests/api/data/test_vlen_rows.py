"""Rows of variable length are read directly from their offsets in the file, with the same result as the HDF5 library."""

import os

import h5py
import numpy as np
import pytest

from snnc import data
from snnc.data.readers.vlen_rows import UnplacedError, rows_of
from snnc.errors import DataFormatError

ROWS = [0, 1, 3, 5000, 40_000, 0, 17, 900]
LAYOUTS = {"contiguous": {}, "chunked": {"chunks": (3,), "maxshape": (None,)}}


def write(path, layout=LAYOUTS["contiguous"], kind=np.float16, lengths=ROWS, userblock=0):
    random = np.random.default_rng(0)
    with h5py.File(path, "w", userblock_size=userblock) as file:
        for name, of in (("times", kind), ("units", np.uint16)):
            rows = file.create_dataset(f"spikes/{name}", (len(lengths),), h5py.vlen_dtype(of), **layout)
            drawn = np.empty(len(lengths), object)
            for number, length in enumerate(lengths):
                row = np.sort(random.uniform(0, 1.2, length)) if name == "times" else random.integers(0, 700, length)
                drawn[number] = row.astype(of)
            rows[:] = drawn
        file["labels"] = np.arange(len(lengths), dtype=np.uint16)
    return path


@pytest.mark.parametrize("lengths", [ROWS, [2] * 299 + [3], [700] * 39 + [701]])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_those_that_the_library_reads(tmp_path, layout, kind, lengths):
    path = write(tmp_path / "a.h5", LAYOUTS[layout], kind, lengths)
    with h5py.File(path) as file, path.open("rb") as raw:
        for name in ("spikes/times", "spikes/units"):
            rows, kept = rows_of(raw.fileno(), file[name]), h5py.check_vlen_dtype(file[name].dtype)
            for number, wanted in enumerate(file[name][:]):
                found = rows.read(raw.fileno(), number)
                assert found.dtype == kept
                np.testing.assert_array_equal(found, wanted)


def read(path):
    with data.shd(path).source.opened() as reader:
        return [reader(number)[0] for number in range(len(ROWS))]


@pytest.mark.parametrize(
    "other",
    [{"layout": {"chunks": (4,), "compression": "gzip"}}, {"userblock": 512}],
)
def test_what_has_no_known_places_is_read_by_the_library(tmp_path, other):
    path = write(tmp_path / "a.h5", **other)
    with h5py.File(path) as file, path.open("rb") as raw, pytest.raises(UnplacedError):
        rows_of(raw.fileno(), file["spikes/times"])
    plain = read(write(tmp_path / "b.h5"))
    for found, wanted in zip(read(path), plain, strict=True):
        np.testing.assert_array_equal(found.units, wanted.units)
        np.testing.assert_allclose(found.times, wanted.times, atol=0)


def test_damaged_places_are_refused_or_left_to_the_library(tmp_path):
    path = write(tmp_path / "a.h5")
    whole = path.read_bytes()
    at = whole.index(b"GCOL")
    for offset in (at, at + 4, at + 8, at + 16, at + 24):
        path.write_bytes(whole[:offset] + b"\xff\xff" + whole[offset + 2 :])
        with h5py.File(path) as file, path.open("rb") as raw, pytest.raises(UnplacedError):
            rows_of(raw.fileno(), file["spikes/times"])
    path.write_bytes(whole)
    source = data.shd(path).source
    with source.opened() as reader:
        reader(0)
        os.truncate(path, len(whole) // 4)
        with pytest.raises(DataFormatError, match=r"SNNC-E580.*sample 4"):
            reader(4)


def test_times_of_16_bits_are_the_nearest_microseconds(tmp_path):
    path = write(tmp_path / "a.h5")
    with h5py.File(path) as file:
        for number, sample in enumerate(read(path)):
            np.testing.assert_array_equal(sample.times, np.rint(file["spikes/times"][number].astype(np.float64) * 1e6))
