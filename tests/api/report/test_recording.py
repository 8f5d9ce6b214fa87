"""Recorded spikes: stored exactly, checked when read, compared with the plan's assumption."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plans import made_plan

import snnc
from snnc.cli import main as cli
from snnc.data.arrays import write_arrays
from snnc.errors import RecordingError
from snnc.report.pictures.encode import pack, pack_places
from snnc.report.pictures.raster import activity, rasters
from snnc.report.recording import Recording, Train, read_recording, write_recording


def recorded(density: float = 0.2, seed: int = 0, steps: int = 30, samples: int = 2, width: int = 50) -> tuple[Recording, np.ndarray]:
    spikes = np.random.default_rng(seed).random((steps, samples, width)) < density
    train = Train("p0_o0", "p0", "layer 0", width, *np.nonzero(spikes))
    return Recording(steps, samples, "by hand", (train,)), spikes


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    recording, spikes = recorded()
    write_recording(tmp_path / "r.npz", recording)
    found = read_recording(tmp_path / "r.npz")
    assert (found.steps, found.samples, found.source) == (30, 2, "by hand")
    again = np.zeros_like(spikes)
    again[found.trains[0].steps, found.trains[0].samples, found.trains[0].ids] = True
    np.testing.assert_array_equal(again, spikes)
    np.testing.assert_array_equal(found.counts(found.trains[0]), spikes.sum(axis=2))
    assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]


@pytest.mark.parametrize("capacity", [60, 3])
def test_a_recording_has_the_spikes_of_a_network_that_drops_some(capacity: int) -> None:
    net = snnc.Sequential(30, snnc.Dense(20, init=snnc.Normal(0.5)), snnc.LIF(0.9, reset="zero"), seed=1)
    x = (np.random.default_rng(0).random((12, 2, 30)) < 0.3).astype(np.float32)
    with snnc.compile(net, mode="drop", capacity=capacity) as session:
        fired = next(iter(session.run(x).values()))
        train = next(t for t in session.record(x, samples=2).trains if t.width == 20)
    again = np.zeros_like(fired)
    again[train.steps, train.samples, train.ids] = 1
    np.testing.assert_array_equal(again, fired)
    assert fired.any()


@pytest.mark.parametrize(
    "change",
    [
        {"about": np.zeros(3, np.uint8)},
        {"about": np.frombuffer(b'{"version": 2}', np.uint8)},
        {"step_0": np.full(5, 99, np.uint8)},
        {"id_0": np.array([1], np.uint8)},
        {"id_0": np.array([1.5])},
        {"sample_0": np.zeros((2, 2), np.uint8)},
        {"step_0": None},
    ],
)
def test_a_damaged_recording_is_refused(tmp_path: Path, change: dict[str, np.ndarray | None]) -> None:
    write_recording(tmp_path / "r.npz", recorded()[0])
    with np.load(tmp_path / "r.npz") as archive:
        arrays = {name: archive[name] for name in archive.files} | change
    write_arrays(tmp_path / "r.npz", {name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(RecordingError, match=r"SNNC-E320.*damaged"):
        read_recording(tmp_path / "r.npz")
    (tmp_path / "r.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(RecordingError, match="damaged"):
        read_recording(tmp_path / "r.npz")


def test_activity_is_compared_with_the_plan() -> None:
    plan = made_plan()
    recording, spikes = recorded(density=0.2)
    fired = activity(plan, recording)[0]
    assert fired["measured"] == pytest.approx(spikes.mean())
    assert fired["assumed"] == plan.activity["p0_o0"] == 0.05
    assert "fires" in fired["warning"]
    assert "the plan assumes 5 %" in fired["warning"]
    assert fired["peak"] == spikes.sum(axis=2).max()
    assert fired["silent"] == (~spikes.any(axis=(0, 1))).sum()
    np.testing.assert_allclose(fired["over_time"], spikes.mean(axis=(1, 2)), atol=1e-5)


def test_activity_as_assumed_gives_no_warning_and_small_windows_do() -> None:
    recording, spikes = recorded(density=0.2)
    plan = made_plan()
    calm = replace(plan, activity={"p0_o0": float(spikes.mean())})
    assert activity(calm, recording)[0]["warning"] == ""
    small = replace(calm, buses=tuple(replace(b, capacity=3) for b in plan.buses))
    assert "but a window has room for 3: further windows follow" in activity(small, recording)[0]["warning"]
    lossy = replace(calm, buses=tuple(replace(b, capacity=3, mode="drop") for b in plan.buses))
    assert "the rest is dropped" in activity(lossy, recording)[0]["warning"]


def test_rasters_hold_every_spike_of_the_first_sample_at_its_place() -> None:
    recording, spikes = recorded(steps=30, width=50)
    raster = rasters(recording)[0]
    picture = np.zeros((raster["rows"], raster["columns"]), int)
    picture.reshape(-1)[raster["places"]] = raster["counts"]
    np.testing.assert_array_equal(picture, spikes[:, 0].T)


def test_long_and_wide_recordings_are_binned() -> None:
    recording, spikes = recorded(density=0.05, steps=1000, samples=1, width=700)
    raster = rasters(recording)[0]
    assert (raster["rows"], raster["columns"]) == (128, 400)
    assert raster["counts"].sum() == spikes.sum()


def test_packing_is_exact() -> None:
    values = np.array([0, 0, 0, 5, 5, 5, 5, 5, 5, 5, 5, 2**40])
    assert pack(values)["runs"] == [0, 3, 5, 8, 2**40, 1]
    few = pack(np.arange(100) % 7)
    assert [few["of"][place] for place in base64.b64decode(few["u8"])] == [n % 7 for n in range(100)]
    assert "i32" in pack(np.arange(100))
    assert "f64" in pack(np.arange(100) * 2**33)
    places = np.array([0, 3, 300, 1000, 1001])
    found, place = [], 0
    for gap in base64.b64decode(pack_places(places)["gaps"]):
        place += gap
        if gap < 255:
            found.append(place)
    assert found == places.tolist()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network for the reference backend, with data."""
    folder = tmp_path_factory.mktemp("recorded")
    net = snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")
    snnc.compile(net, loss="ce_mean_membrane", optimizer="adam:0.01", batch=10, output=folder / "p").close()
    rng = np.random.default_rng(0)
    x = (rng.random((30, 8, 6)) < 0.5).astype(np.uint8)
    np.savez(folder / "d.npz", x=x, y=rng.integers(0, 3, 30))
    np.savez(folder / "x.npz", input=x[:4].swapaxes(0, 1))
    return folder


def test_a_run_records_the_spikes_that_the_network_fires(project: Path) -> None:
    arguments = ["run", str(project / "p"), "--inputs", str(project / "x.npz"), "--outputs", str(project / "y.npz"), "--record", "2"]
    assert cli.run_command(arguments) == 0
    recording = read_recording(project / "p" / "model" / "recording.npz")
    assert (recording.steps, recording.samples) == (8, 2)
    hidden = next(t for t in recording.trains if t.owner == "p0")
    with snnc.open(project / "p") as session:
        weight = next(v for k, v in session.state_dict().items() if v.ndim == 2 and v.shape[1] == 6)
        bias = next((v for k, v in session.state_dict().items() if v.shape == (5,)), np.zeros(5))
    x = np.load(project / "x.npz")["input"][:, :2].astype(np.float64)
    v, wanted = np.zeros((2, 5)), np.zeros((8, 2, 5), bool)
    spiked = np.zeros((2, 5))
    for t in range(8):
        v = 0.8 * v + x[t] @ weight.T + bias - spiked
        wanted[t] = v > 1
        spiked = wanted[t].astype(float)
    found = np.zeros_like(wanted)
    found[hidden.steps, hidden.samples, hidden.ids] = True
    np.testing.assert_array_equal(found, wanted)
    assert wanted.any()
    assert not wanted.all()


def test_training_records_samples_behind_it(project: Path) -> None:
    assert cli.run_command(["train", str(project / "p"), "--data", str(project / "d.npz"), "--record", "3"]) == 0
    assert read_recording(project / "p" / "model" / "recording.npz").samples == 3


def test_a_model_without_a_project_has_no_place_for_spikes(project: Path, capsys: pytest.CaptureFixture[str], root: Path) -> None:
    files = ["--inputs", str(project / "x.npz"), "--outputs", str(project / "z.npz"), "--record", "1"]
    assert cli.run_command(["run", str(root / "examples" / "digits" / "digits.onnx"), *files]) == 2
    assert "SNNC-E320" in capsys.readouterr().err
    assert cli.run_command(["run", str(project / "p"), *files, "--target", "gc200"]) == 2
    assert "SNNC-E320" in capsys.readouterr().err
    assert not (project / "z.npz").exists()


def test_too_many_spikes_are_refused(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setattr("snnc.report.recording.MAX_SPIKES", 3)
    with snnc.open(project / "p") as session, pytest.raises(RecordingError, match=r"SNNC-E320.*fewer samples"):
        session.record(np.load(project / "x.npz")["input"])
    with snnc.open(project / "p") as session, pytest.raises(RecordingError, match="at least 1"):
        session.record(np.load(project / "x.npz")["input"], samples=0)


def test_json_holds_the_activity(project: Path) -> None:
    from snnc.report import Subject, write

    recording, _ = recorded()
    data = json.loads(write(Subject(made_plan(), {}, None, recording), "json"))
    assert data["recording"]["activity"][0]["label"] == "layer 0"
    assert b"layer 0" in write(Subject(made_plan(), {}, None, recording), "text")
