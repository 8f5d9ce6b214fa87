"""``fit`` on a data set in a file, killed at random moments: a resumed training ends with the same bits as an uninterrupted one."""

import csv
import os
import shutil
import signal
import time
import traceback

import h5py
import numpy as np
import pytest

import snnc
from snnc.backends.runtime.weights import read_weight_file
from snnc.backends.training.saving.checkpoint import position_in

SAMPLES, BATCH, EPOCHS, STEPS = 23, 4, 4, 8


def write_file(path):
    random = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for name, kind in (("times", np.float16), ("units", np.uint16)):
            rows = file.create_dataset(f"spikes/{name}", (SAMPLES,), h5py.vlen_dtype(kind))
            for number in range(SAMPLES):
                rows[number] = random.uniform(0, 1, 200).astype(kind) if name == "times" else random.integers(0, 700, 200).astype(kind)
        file["labels"] = random.integers(0, 3, SAMPLES).astype(np.uint16)


def child(work):
    """Do `work` in a process of its own, silently; return its number."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(number):
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def compiled(target, folder):
    net = snnc.Sequential(70, snnc.Dense(6), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI())
    snnc.compile(net, target, steps=STEPS, loss="ce_mean_membrane", optimizer="adam:0.01", batch=BATCH, output=folder).close()


def fit(above, kept, begun=None):
    """Train, or go on, and write everything into the folder `kept`; a byte goes to `begun` after the first update."""
    data = snnc.data.shd(above / "shd.h5").map(snnc.data.DropEvents(0.2, seed=4)).map(snnc.data.Bin(STEPS, duration=1.0, downsample=10))
    train, held = data.split(0.8, seed=2)

    def tell(progress):
        if begun is not None:
            os.write(begun, b".")

    with snnc.open(above / "project") as session:
        session.fit(
            train,
            epochs=EPOCHS,
            seed=3,
            learning_rate="warm_up:updates=3+plateau:0.05,patience=0",
            validation=held,
            metrics=["confusion"],
            patience=50,
            best=kept / "best",
            restore_best=True,
            log=kept / "log.csv",
            checkpoints=snnc.Checkpoints(kept / "kept", every=1e-9, resume=True),
            callback=tell,
        )


def left(kept):
    """Return everything that a training has left: weights, moments, position, best weights, and the log without times."""
    found = {}
    for name in ("kept", "best"):
        entries, metadata = read_weight_file(kept / name)
        found |= {f"{name} {key}": value.tobytes() for key, value in entries.items()}
        found[f"{name} at"] = position_in(kept / name, entries, metadata)
    found["log"] = [{**row, "seconds": ""} for row in csv.DictReader((kept / "log.csv").open())]
    return found


@pytest.mark.parametrize(
    ("target", "kills"),
    [("reference", 5), pytest.param("reference", 200, marks=pytest.mark.wide), pytest.param("cpu", 200, marks=pytest.mark.wide)],
)
def test_every_resumed_training_ends_with_the_bits_of_one_that_nobody_killed(tmp_path, target, kills):
    write_file(tmp_path / "shd.h5")
    assert ended(child(lambda: compiled(target, tmp_path / "project"))) == 0
    whole, kept = tmp_path / "whole", tmp_path / "once"
    whole.mkdir()
    began, begun = os.pipe()
    number, start = child(lambda: fit(tmp_path, whole, begun)), time.monotonic()
    os.read(began, 1)
    opened = time.monotonic() - start
    assert ended(number) == 0
    seconds = time.monotonic() - start - opened
    wanted, random, killed, resumed, places = left(whole), np.random.default_rng(5), 0, 0, set()
    while killed < kills or not resumed:
        kept.mkdir(exist_ok=True)
        began, begun = os.pipe()
        number = child(lambda: fit(tmp_path, kept, begun))  # noqa: B023
        os.close(begun)
        if killed < kills:
            if random.random() < 0.8:  # the others are killed while they open the project, or soon after
                os.read(began, 1)
            time.sleep(float(random.uniform(0, min(seconds, 0.7))))
            os.kill(number, signal.SIGKILL)
        code = ended(number)
        os.close(began)
        assert code in (0, -signal.SIGKILL)
        killed += code != 0
        if (kept / "kept").exists():
            entries, metadata = read_weight_file(kept / "kept")
            position = position_in(kept / "kept", entries, metadata)
            places.add((position.epoch, position.batch))
        if code == 0:
            assert left(kept) == wanted
            shutil.rmtree(kept)
            resumed += 1
    assert len(places) >= min(kills, 20) // 3
