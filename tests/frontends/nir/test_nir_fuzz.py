"""Mutated NIR files are refused with a code or read correctly, and no file outside their folder is opened."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import fuzz_nir
import fuzz_onnx
import fuzzing
import h5py
import numpy as np
import pytest
from wide import examples

HERE = Path(__file__).parent


@pytest.fixture
def watched(tmp_path):
    """Return the model's folder, the one outside, and a guard of them."""
    model, outside = fuzzing.plant(tmp_path / "w")
    return model, outside, fuzzing.Guard(model, outside)


def test_mutated_files_are_refused_or_read_right(tmp_path):
    cases = examples(20, 80)
    count = fuzzing.fuzz("fuzz_nir", tmp_path, seed=0, cases=cases)
    assert not count.failures
    assert sum(count.tally.values()) == cases
    assert count.tally["read, equal"] > cases / 7
    assert count.tally["refused SNNC-E703"] > cases / 25
    assert count.peak < fuzzing.MEMORY / 1024


def test_the_watch_sees_what_hdf5_opens(watched):
    model, _, guard = watched
    with h5py.File(model / "m.h5", "w") as file:
        file["x"] = h5py.ExternalLink("../outside/secret.h5", "/weight")
    with pytest.raises(fuzzing.OutsideReadError), guard(), h5py.File(model / "m.h5") as file:
        assert file["x"][0, 0] == fuzzing.SECRET
    with guard(), h5py.File(model / "m.h5") as file:
        assert len(file) == 1


def test_the_watch_sees_a_read_through_a_link_and_past_python(watched):
    model, outside, guard = watched
    (model / "link.bin").symlink_to(outside / "secret.bin")
    with pytest.raises(fuzzing.OutsideReadError), guard():
        handle = ctypes.CDLL(None).open(str(model / "link.bin").encode(), 0)
        ctypes.CDLL(None).close(handle)
    with pytest.raises(fuzzing.OutsideReadError, match="elsewhere"), guard():
        elsewhere = model.parent / "elsewhere"
        elsewhere.touch()
        elsewhere.read_bytes()


@pytest.mark.parametrize("fuzzer", [fuzz_nir, fuzz_onnx])
def test_a_reader_that_follows_a_path_out_of_the_folder_would_fail(watched, monkeypatch, fuzzer):
    model, outside, guard = watched
    name = "load_nir" if fuzzer is fuzz_nir else "load_onnx"
    owner = fuzz_nir if fuzzer is fuzz_nir else __import__("snnc.frontends.onnx.load", fromlist=[name])
    monkeypatch.setattr(owner, name, lambda *_, **__: (outside / "secret.bin").read_bytes())
    with pytest.raises(fuzzing.OutsideReadError):
        fuzzer.compare(model / "case", 0, guard)


def test_a_run_goes_on_where_it_stopped(tmp_path):
    count = fuzzing.Count(5, 10, None, tmp_path / "state")
    for _ in range(4):
        k = count.next()
        if k != 2:
            count.add(k, "read", 10)
    count.save()
    again = fuzzing.Count(5, 6, None, tmp_path / "state")
    assert again.tally == {"read": 3}
    assert [again.next() for _ in range(4)] == [2, 4, 5, None]


def test_every_change_applies_to_some_file(tmp_path):
    from nir_hdf5 import CHANGES, Spot
    from nir_random import Maker

    model, outside = fuzzing.plant(tmp_path / "w")
    path = model / "case.nir"
    for name, change in CHANGES.items():
        for seed in range(40):
            shutil.copy(fuzzing.CORPUS / "hand_nir_nested.nir", path)
            before = path.read_bytes()
            try:
                with h5py.File(path, "r+") as file:
                    change(Spot(file, Maker(np.random.default_rng(seed)), outside))
            except (OSError, ValueError, TypeError, KeyError, RuntimeError, OverflowError):
                continue
            if path.read_bytes() != before:
                break
        else:
            raise AssertionError(name)


@pytest.mark.wide
def test_the_command_line_counts_cases(tmp_path):
    command = [sys.executable, "fuzz_nir.py", "--cases", "3", "--state", str(tmp_path / "s")]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0
    assert "fuzz_nir: 3 cases, 0 failures" in done.stdout.splitlines()[-1]
