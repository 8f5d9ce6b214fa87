"""Data sets: hand-written files in official formats, binning, encoders, order, and training on them."""

import gzip
import os
import struct
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import h5py
import numpy as np
import pytest

import snnc
from snnc import data
from snnc.errors import ChecksumError, DataFormatError, DataOptionError, SampleError


def only(batches):
    (batch,) = batches
    return batch


def write_shd(path, times, units, labels):
    with h5py.File(path, "w") as file:
        for name, rows, kind in (("times", times, np.float16), ("units", units, np.uint16)):
            made = file.create_dataset(f"spikes/{name}", (len(rows),), h5py.vlen_dtype(kind))
            for number, row in enumerate(rows):
                made[number] = np.array(row, kind)
        file["labels"] = np.array(labels, np.uint16)


def test_shd_is_binned_in_time_and_space(tmp_path):
    write_shd(tmp_path / "shd.h5", [[0, 0.25, 0.5], [0.75, 1.5]], [[0, 699, 7], [13, 2]], [3, 19])
    found = data.shd(tmp_path / "shd.h5").map(data.Bin(steps=4, dt=0.25, downsample=7))
    x, y = only(found.batches(2))
    assert y.tolist() == [3, 19]
    assert x.shape == (4, 2, 100)
    assert np.argwhere(x.dense()).tolist() == [[0, 0, 0], [1, 0, 99], [2, 0, 1], [3, 1, 1]]


@pytest.mark.parametrize(
    ("times", "units", "labels", "says"),
    [
        ([[0.5]], [[700]], [1], "sample 0: event 0 has the unit 700"),
        ([[0.5, 1]], [[7]], [1], "2 times and 1 units"),
        ([[-1.0]], [[7]], [1], "negative"),
        ([[0.5]], [[7]], [20], "label is 20"),
    ],
)
def test_damaged_spoken_digits_are_refused(tmp_path, times, units, labels, says):
    write_shd(tmp_path / "shd.h5", times, units, labels)
    with pytest.raises(DataFormatError, match=says):
        list(data.shd(tmp_path / "shd.h5").map(data.Bin(steps=4)).batches(1))
    (tmp_path / "cut.h5").write_bytes((tmp_path / "shd.h5").read_bytes()[:300])
    with pytest.raises(DataFormatError, match=r"cut\.h5"):
        data.shd(tmp_path / "cut.h5")


def atis(x, y, on, time):
    return bytes([x, y, on << 7 | time >> 16, time >> 8 & 255, time & 255])


def test_nmnist_has_two_polarities_and_a_clock_that_overflows(tmp_path):
    (tmp_path / "3").mkdir()
    file = tmp_path / "3" / "00001.bin"
    file.write_bytes(atis(5, 6, 1, 1000) + atis(33, 0, 0, 70000) + atis(0, 240, 0, 0) + atis(1, 2, 1, 100))
    found = data.nmnist(tmp_path).map(data.Bin(dt=0.001))
    x, y = only(found.batches(4))
    assert y.tolist() == [3]
    assert np.argwhere(x.dense()).tolist() == [[1, 0, 1, 6, 5], [8, 0, 1, 2, 1], [70, 0, 0, 0, 33]]
    merged, _ = only(data.nmnist(tmp_path).map(data.Bin(steps=2, duration=0.08, downsample=2, polarity="merged", counts=True)).batches(4))
    assert merged.shape == (2, 1, 17, 17)
    assert merged.sum() == 3
    file.write_bytes(file.read_bytes() + b"1")
    with pytest.raises(DataFormatError, match=r"00001\.bin' is damaged at byte 20"):
        list(found.batches(1))
    file.write_bytes(atis(5, 6, 1, 1000) + atis(34, 0, 0, 1))
    with pytest.raises(DataFormatError, match="at byte 5: an event is at x 34"):
        list(found.batches(1))


def packet(*events, kind=1, overflow=0):
    head = struct.pack("<hhiiiiii", kind, 1, 8, 4, overflow, len(events), len(events), len(events))
    return head + b"".join(struct.pack("<Ii", x << 17 | y << 2 | on << 1 | valid, time) for x, y, on, valid, time in events)


def test_gestures_are_cut_out_of_recordings(tmp_path):
    text = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#!END-HEADER\r\n"
    first = packet((1, 2, 1, 1, 100), (3, 4, 0, 1, 200), (9, 9, 0, 0, 201))
    whole = text + first + packet((0, 0, 0, 1, 5), kind=0) + packet((127, 126, 1, 1, 300), (5, 5, 1, 1, 400))
    (tmp_path / "user01_led.aedat").write_bytes(whole)
    (tmp_path / "user01_led_labels.csv").write_text("class,startTime_usec,endTime_usec\n1,100,300\n11,300,400\n")
    found = data.dvs_gesture(tmp_path).map(data.Bin(steps=2, dt=100e-6))
    x, y = only(found.batches(2))
    assert y.tolist() == [0, 10]
    assert np.argwhere(x.dense()).tolist() == [[0, 0, 1, 2, 1], [0, 1, 1, 126, 127], [1, 0, 0, 4, 3]]
    (tmp_path / "user01_led.aedat").write_bytes(whole[:-3])
    with pytest.raises(DataFormatError, match=r"at byte \d+: a packet declares 16 bytes, but the file has only 13 more"):
        list(data.dvs_gesture(tmp_path).map(data.Bin(steps=2)).batches(1))


def test_gestures_as_tonic_and_spikingjelly_cut_them(tmp_path):
    (tmp_path / "tonic" / "user01").mkdir(parents=True)
    np.save(tmp_path / "tonic" / "user01" / "4.npy", np.array([[1, 2, 1, 10], [3, 4, 0, 12]]))
    (tmp_path / "jelly" / "4").mkdir(parents=True)
    np.savez(tmp_path / "jelly" / "4" / "user01_0.npz", x=[1, 3], y=[2, 4], p=[1, 0], t=[10_000, 12_000])
    for name in ("tonic", "jelly"):
        x, y = only(data.dvs_gesture(tmp_path / name).map(data.Bin(dt=0.001)).batches(1))
        assert y.tolist() == [4]
        assert np.argwhere(x.dense()).tolist() == [[0, 0, 1, 2, 1], [2, 0, 0, 4, 3]]
    np.save(tmp_path / "tonic" / "user01" / "4.npy", np.array([[1, 2, 1, 10], [128, 4, 0, 12]]))
    with pytest.raises(DataFormatError, match=r"4\.npy' is damaged: event 1 is at x 128"):
        list(data.dvs_gesture(tmp_path / "tonic").map(data.Bin(dt=0.001)).batches(1))


@pytest.mark.parametrize("packed", [False, True])
def test_mnist_is_read_from_idx_files(tmp_path, packed):
    images = bytes([0, 0, 8, 3]) + struct.pack(">iii", 2, 1, 2) + bytes([0, 255, 51, 102])
    labels = bytes([0, 0, 8, 1]) + struct.pack(">i", 2) + bytes([7, 1])
    end, write = (".gz", gzip.compress) if packed else ("", bytes)
    (tmp_path / f"a-images-idx3-ubyte{end}").write_bytes(write(images))
    (tmp_path / f"a-labels-idx1-ubyte{end}").write_bytes(write(labels))
    x, y = only(data.mnist(tmp_path / f"a-images-idx3-ubyte{end}").batches(2))
    np.testing.assert_allclose(x, [[[[0, 1]], [[0.2, 0.4]]]], atol=1e-7)
    assert y.tolist() == [7, 1]
    (tmp_path / f"a-images-idx3-ubyte{end}").write_bytes(write(images[:-1]))
    with pytest.raises(DataFormatError, match="damaged at byte"):
        data.mnist(tmp_path / f"a-images-idx3-ubyte{end}")
    with pytest.raises(ChecksumError):
        data.verify_archive(tmp_path / f"a-images-idx3-ubyte{end}")


def test_npy_files_give_rows_and_damaged_ones_are_refused(tmp_path):
    x, y = np.arange(30, dtype=np.int16).reshape(5, 3, 2), np.arange(5)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    found, targets = only(data.npy(tmp_path / "x.npy", tmp_path / "y.npy").batches(3, order=[4, 0]))
    np.testing.assert_array_equal(found, x[[4, 0]].swapaxes(0, 1))
    assert targets.tolist() == [4, 0]
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(DataFormatError, match="60 bytes, but the file contains 59 bytes"):
        data.npy(tmp_path / "x.npy", tmp_path / "y.npy")


class Tonic:
    """A stand-in of the structure of tonic's data sets."""

    sensor_size = (3, 2, 2)

    def __len__(self):
        return 2

    def __getitem__(self, number):
        kind = np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", bool)])
        return np.array([(number, 1, 500, True), (2, 0, 1500, False)], kind), number


def test_foreign_data_sets_are_adapted():
    x, y = only(data.adapt(Tonic()).map(data.Bin(steps=2, dt=0.001)).batches(2))
    assert y.tolist() == [0, 1]
    assert np.argwhere(x.dense()).tolist() == [[0, 0, 1, 1, 0], [0, 1, 1, 1, 1], [1, 0, 0, 0, 2], [1, 1, 0, 0, 2]]


def test_latency_and_delta_are_those_of_snntorch():
    torch = pytest.importorskip("torch")
    spikegen = pytest.importorskip("snntorch.spikegen")
    values = np.random.default_rng(0).random((40,), dtype=np.float32)
    images = data.in_memory(values[None], [0], timed=False)
    for options in ({}, {"normalize": True}, {"linear": True, "normalize": True}, {"tau": 3.0}, {"clip": True, "threshold": 0.3}):
        x, _ = only(images.map(data.Latency(20, **options)).batches(1))
        wanted = spikegen.latency(torch.from_numpy(values), num_steps=20, bypass=True, **options).numpy()
        np.testing.assert_array_equal(x.dense()[:, 0], wanted, err_msg=str(options))
    moving = np.random.default_rng(1).random((9, 5), dtype=np.float32)
    for padding in (False, True):
        x, _ = only(data.in_memory(moving[None], [0]).map(data.Delta(0.2, padding, off=True)).batches(1))
        wanted = spikegen.delta(torch.from_numpy(moving), 0.2, padding, off_spike=True).numpy()
        np.testing.assert_array_equal(x.dense()[:, 0, 1] - x.dense()[:, 0, 0], wanted)


def test_rates_are_probabilities_and_follow_from_epoch_and_sample_alone():
    images = data.in_memory(np.full((6, 50), 0.3, np.float32), np.zeros(6, int), timed=False).map(data.Rate(400, seed=5))
    x, _ = only(images.batches(6))
    assert x.dense().mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 120_000))
    late, _ = list(images.take([1, 5, 3]).batches(2))[1]
    np.testing.assert_array_equal(late.dense()[:, 0], x.dense()[:, 3])
    other, _ = only(images.batches(6, epoch=1))
    assert (other.dense() != x.dense()).any()


def test_population_codes_fire_earliest_at_the_nearest_centre():
    x, _ = only(data.in_memory([[0.5]], [0], timed=False).map(data.Population(5, 11)).batches(1))
    # centres -1/6, 1/6, 1/2, 5/6, 7/6; width 2/9: responses exp(-(1/3 / (2/9))^2 / 2) = 0.325 beside the centre
    assert np.argwhere(x.dense()).tolist() == [[0, 0, 0, 2], [7, 0, 0, 1], [7, 0, 0, 3]]


class Many(Tonic):
    """More events: 40 for each sample, evenly in time."""

    def __getitem__(self, number):
        events = np.zeros(40, np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", bool)]))
        events["t"], events["x"] = np.arange(40) * 50, np.arange(40) % 3
        return events, number


@pytest.mark.parametrize("change", [data.Shift(2, seed=1), data.Jitter(0.001), data.DropEvents(0.5), data.DropTime(0.3)])
def test_augmentation_is_the_same_for_a_sample_of_an_epoch_and_leaves_the_files_events(change):
    found = data.adapt(Many()).map(change).map(data.Bin(steps=40, dt=0.00005))
    for epoch in range(3):
        whole, _ = only(found.batches(2, epoch=epoch))
        single, _ = only(found.batches(1, order=[1], epoch=epoch))
        np.testing.assert_array_equal(whole.dense()[:, 1], single.dense()[:, 0])
    assert len({only(found.batches(2, epoch=e))[0].dense().tobytes() for e in range(20)}) > 1


def test_splits_share_nothing_and_wrong_settings_are_refused():
    numbers = data.in_memory(np.arange(10.0).reshape(10, 1), np.arange(10))
    first, second = numbers.split(0.7, seed=3)
    seen = [only(part.batches(10))[1].tolist() for part in (first, second)]
    assert sorted(seen[0] + seen[1]) == list(range(10))
    assert len(first) == 7
    for wrong in (lambda: numbers.split(0.01), lambda: numbers.take([10]), lambda: numbers.batches(0), lambda: data.Bin(duration=1.0)):
        with pytest.raises(DataOptionError):
            wrong()
    with pytest.raises(SampleError, match="bin them"):
        list(data.adapt(Tonic()).batches(2))


class Fake:
    """A source of samples that are made when they are read."""

    classes, timed = 3, True

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    @contextmanager
    def opened(self):
        yield lambda number: (np.full((50, 6), number % 2, np.float32), number % 3)


@pytest.mark.parametrize("ahead", [1, 3])
def test_no_more_than_a_few_batches_are_read_ahead_and_the_thread_ends_with_its_reader(ahead):
    seen = []
    source = data.DataSet(Fake(10**9), np.arange(10**5), ahead=ahead).map(lambda sample: seen.append(1) or sample)
    before = threading.active_count()
    batches = source.batches(10)
    for taken in range(1, 6):
        next(batches)
        time.sleep(0.05)
        assert len(seen) <= 10 * (taken + ahead + 1)
    batches.close()
    assert threading.active_count() == before


def peak(samples):
    """Train on so many samples of 1 MB, and return the largest resident memory in MB."""
    code = f"""
import re
from contextlib import contextmanager
import numpy as np, snnc
class Fake:
    classes, timed = 10, True
    def __len__(self): return {samples}
    @contextmanager
    def opened(self):
        yield lambda number: ((np.random.default_rng(number).random((100, 2500), np.float32) < 0.02).astype(np.float32), number % 10)
net = snnc.Network()
source = net.input(2500, name="input")
readout = net.population(10, snnc.LI(), name="readout")
net.connect(source, readout, snnc.Dense(seed=1))
with snnc.compile(net, target="cpu", loss="ce_mean_membrane", optimizer="sgd:0.01", steps=100, batch=16) as session:
    session.fit(snnc.data.DataSet(Fake()))
# Not getrusage: its peak includes that of the process that started this one.
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.wide
def test_a_data_set_larger_than_memory_trains_in_less_than_a_gigabyte():
    """3 GB by default; SNNC_TEST_SAMPLES=50000 makes 50 GB."""
    assert peak(int(os.environ.get("SNNC_TEST_SAMPLES", "3000"))) < 1024


def network():
    net = snnc.Network()
    source = net.input(6, name="input")
    hidden = net.population(8, snnc.LIF(), name="hidden")
    readout = net.population(3, snnc.LI(), name="readout")
    net.connect(source, hidden, snnc.Dense(seed=1))
    net.connect(hidden, readout, snnc.Dense(seed=2))
    return net


@pytest.mark.representative("reference-None", "cpu-None")
@pytest.mark.parametrize(("target", "batch"), [("reference", None), ("cpu", None), ("gc200", 4)])
def test_training_on_a_data_set_gives_the_bits_of_arrays(target, batch):
    rng = np.random.default_rng(0)
    x, y = (rng.random((10, 5, 6)) < 0.4).astype(np.float32), rng.integers(0, 3, 10)
    spikes = data.in_memory(x, y).map(data.Threshold(0.5))
    options = {"loss": "ce_mean_membrane", "optimizer": "adam:0.01", "steps": 5, **({} if batch is None else {"batch": batch})}
    with snnc.compile(network(), target=target, **options) as session:
        start = session.state_dict()
        wanted = session.fit(x, y, batch=4, epochs=2, seed=3).losses, session.predict(x), session.evaluate(x, y)
    with snnc.compile(network(), target=target, **options) as session:
        session.load_state_dict(start)
        found = session.fit(spikes, batch=4, epochs=2, seed=3).losses, session.predict(spikes), session.evaluate(spikes)
        np.testing.assert_array_equal(session.predict(snnc.Events.from_dense(x)), found[1])
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])
    assert found[2] == wanted[2]
