"""Kills training at random moments, and checks which files exist after each kill.

Every run is a separate child process; the parent loads no program, so it can be forked at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import snnc
from snnc.backends.folders.manifest import PROFILE, TRAINED, TRAINED_LOCK
from snnc.backends.runtime.weights import read_weight_file
from snnc.backends.training.saving import progress
from snnc.backends.training.saving.checkpoint import Position, position_in, save_checkpoint
from snnc.cli.main import run_command

SAMPLES, BATCH = 23, 5
WITH_EVERY_RUN = {".snnc.lock", "model/.trained.safetensors.part", TRAINED_LOCK, PROFILE}
"""What a run that ends writes after its weights, and what a kill leaves."""
UNFINISHED_PROFILE = r"model/\.profile\.json\.\w+\.snnc-temporary"
"""What a kill leaves that comes while the profile is written; the next run that writes it takes this away."""


@dataclass
class Killed:
    """What was seen.

    Attributes
    ----------
    kills
        Children that were killed while they ran.
    beyond
        Checkpoints that were over before the kill and not there after it.
    strange
        Kills after which the file was damaged, mixed, or not of the training that nobody killed.
    places
        Where the trainings stood.
    ends
        How many were resumed to their end, and had other bits there.
    """

    kills: int = 0
    beyond: int = 0
    strange: list[str] = field(default_factory=list)
    places: set[tuple[int, int]] = field(default_factory=set)
    ends: list[bool] = field(default_factory=list)


def write_data(path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(path, x=rng.integers(0, 2, (SAMPLES, 6, 6)).astype(np.uint8), y=rng.integers(0, 3, SAMPLES))


def child(work) -> int:
    """Do `work` in a process of its own, silently; return its number."""
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        code = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended(number: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def digest(entries) -> str:
    found = hashlib.sha256()
    for name in sorted(entries):
        found.update(name.encode() + np.ascontiguousarray(entries[name]).tobytes())
    return found.hexdigest()


def compile_project(folder: Path, target: str) -> None:
    net = snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")
    snnc.compile(net, target, loss="ce_mean_membrane", optimizer="adam:0.01", batch=BATCH, output=folder).close()


def imported(folder: Path, data: Path) -> None:
    """Train the reference here, which loads no program: children need not import what this process has imported."""
    compile_project(folder, "reference")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert run_command(["train", str(folder), "--data", str(data), "--epochs", "1"]) == 0


def training(folder: Path, data: Path, epochs: int, note: Callable[[Path, Position], None]):
    """Train or resume; every checkpoint that is over is noted."""

    def save(path, values, position):
        save_checkpoint(path, values, position)
        note(path, position)

    def work():
        os.dup2(os.open(os.devnull, os.O_RDWR), 2)
        progress.save_checkpoint = save
        settings = ["--epochs", str(epochs), "--seed", "3", "--checkpoint-every", "0.001ms", "--resume"]
        settings += ["--lr", "warm_up:updates=3+plateau:0.05,patience=0", "--validation", str(data), "--patience", "50"]
        return run_command(["train", str(folder), "--data", str(data), *settings])

    return work


def append(path: Path, *words: object) -> None:
    with path.open("a") as stream:
        stream.write(" ".join(map(str, words)) + "\n")


def kept(file: Path):
    entries, metadata = read_weight_file(file)
    position = position_in(file, entries, metadata)
    return (position.epoch, position.batch), digest(entries)


def untouched(folder: Path, data: Path, epochs: int) -> tuple[dict[tuple[int, int], str], float]:
    """Train without a kill; return the digest of every checkpoint, and the seconds between the first and the last."""
    table = folder.parent / "table"

    def note(path: Path, position: Position) -> None:
        append(table, position.epoch, position.batch, kept(path)[1], time.monotonic())

    assert ended(child(training(folder, data, epochs, note))) == 0
    rows = [line.split() for line in table.read_text().splitlines()]
    return {(int(epoch), int(batch)): found for epoch, batch, found, _ in rows}, float(rows[-1][3]) - float(rows[0][3])


def opens(folder: Path) -> bool:
    def work() -> None:
        with snnc.open(folder) as session:
            session.state_dict()

    return ended(child(work)) == 0


def kill_training(above: Path, target: str, epochs: int, kills: int, seed: int) -> Killed:
    """Kill a training `kills` times, resume it each time, begin anew when it is over."""
    fresh, folder, log, data = above / "fresh", above / "p", above / "log", above / "data.npz"
    write_data(data)
    imported(above / "imported", data)
    assert ended(child(lambda: compile_project(fresh, target))) == 0
    shutil.copytree(fresh, above / "whole")
    table, seconds = untouched(above / "whole", data, epochs)
    last = table[epochs, 0]
    rng, found = np.random.default_rng(seed), Killed()
    while found.kills < kills or not found.ends:
        if not folder.exists():
            shutil.copytree(fresh, folder)
            log.write_text("")
        begun, begins = os.pipe()

        def note(_: Path, position: Position, begins: int = begins) -> None:
            append(log, position.epoch, position.batch)
            os.write(begins, b".")

        number = child(training(folder, data, epochs, note))
        os.close(begins)
        if found.kills < kills:
            if rng.random() < 0.8:  # the others are killed anywhere between the start of the process and the end of training
                os.read(begun, 1)
            time.sleep(float(rng.uniform(0, seconds)))
            os.kill(number, signal.SIGKILL)
        code = ended(number)
        os.close(begun)
        found.kills += code == -signal.SIGKILL
        look(folder, log, table, found)
        if code == 0:
            found.ends.append(kept(folder / TRAINED)[1] == last)
            shutil.rmtree(folder)
        elif code != -signal.SIGKILL:
            found.strange.append(f"exit code {code}")
    return found


def look(folder: Path, log: Path, table: dict[tuple[int, int], str], found: Killed) -> None:
    """Compare what a kill has left with what was over before it."""
    over = [tuple(map(int, line.split())) for line in log.read_text().splitlines() if line.count(" ") == 1 and line[-1].isdigit()]
    if not (folder / TRAINED).exists():
        found.beyond += len(over) > 0
        return
    try:
        place, values = kept(folder / TRAINED)
    except snnc.SnncError as error:
        found.strange.append(str(error))
        return
    found.places.add(place)
    found.beyond += bool(over) and place < max(over)
    if table.get(place) != values:
        found.strange.append(f"other values at {place}")
    names, whole = ({str(p.relative_to(top)) for p in top.rglob("*") if p.is_file()} for top in (folder, folder.parent / "whole"))
    unfinished = {name for name in names if re.fullmatch(UNFINISHED_PROFILE, name)}
    if names - WITH_EVERY_RUN - unfinished != whole - WITH_EVERY_RUN:
        found.strange.append(f"other files: {sorted(names)}")
    if len(unfinished) > 1:
        found.strange.append(f"temporary files stay: {sorted(unfinished)}")
    if not opens(folder):
        found.strange.append("the project does not open")
