"""The processes that test_ranks.py starts: they train each case together and write the results.

Argument: the folder that contains the project ``together`` and receives ``rank0.npz``, ``rank1.npz``. The environment is that of rank 0.
"""

import contextlib
import io
import os
import signal
import sys
from pathlib import Path

import host_flags  # noqa: F401 - before anything is built
import numpy as np
from ranks_cases import ALWAYS, BATCH, CASES, NORMALISED, SAMPLES, fitted, samples_of, session_of
from wide import WIDE

import snnc
from snnc.backends.runtime.errors import RanksDifferError
from snnc.backends.training.saving.checkpoint import Checkpoints
from snnc.cli.main import run_command
from snnc.compiler.losses.optimizers import SGD


def refused(session, labels=0, **options):
    """What a process says when rank 1 was given something else than rank 0; `labels` is added to all of them."""
    x, y = samples_of(session.program)
    try:
        session.fit(x, (y + labels) % 4, **options)
    except RanksDifferError as error:
        return str(error)
    return ""


def others(rank):
    """What the processes may disagree about, and what is said of it."""
    name = "learned neurons"
    with session_of(name) as session:
        yield "labels", refused(session, rank)
        yield "schedule", refused(session, seed=rank)
        yield "rates", refused(session, learning_rate=lambda epoch: 1e-2 * (1 + rank))
    with session_of(name, CASES[name].program(SGD(1e-2, 0.5 * rank))) as session:
        yield "optimizer", refused(session)
    with session_of("in parts" if rank else name) as session:
        yield "network", refused(session)


def stopped(rank, file):
    """Parameters after rank 1 alone was told to stop in the second of three epochs; all go on later."""
    name, ends = "learned neurons", []
    signal.signal(signal.SIGTERM, lambda *_: ends.append("stopped"))

    def stop(at):
        if rank == 1 and (at.epoch, at.batch) == (1, 0):
            signal.raise_signal(signal.SIGTERM)

    with session_of(name) as session:
        x, y = samples_of(session.program)
        session.fit(x, y, epochs=3, batch=BATCH, callback=stop, checkpoints=Checkpoints(file, every="none"))
        yield "ends", np.array(ends)
        yield from session.state_dict().items()
    with session_of(name) as session:
        session.fit(x, y, epochs=3, batch=BATCH, checkpoints=Checkpoints(file, every="none", resume=True))
        for label, value in session.state_dict().items():
            yield f"resumed {label}", value


def watched(folder):
    """What a data set and a validation that processes share come to: losses, the validation, the best weights."""
    with session_of("learned neurons") as session:
        x, y = samples_of(session.program)
        (values,) = x.values()
        data = snnc.data.in_memory(values, y)
        history = session.fit(
            data,
            batch=BATCH,
            epochs=3,
            seed=5,
            validation=data.take(np.arange(SAMPLES - 2)),
            metrics=["confusion"],
            best=folder / "best.safetensors",
            restore_best=True,
            log=folder / "log.csv",
        )
        yield "losses", np.array(history.batch_losses)
        yield "validation", np.array([(v.loss, v.accuracy) for v in history.validation])
        yield "confusion", history.validation[-1].metrics["confusion"]
        yield "best", np.array(history.best_epoch)
        yield from session.state_dict().items()


def wide_parts(folder, rank):
    """What only the wide tests read."""
    found = {}
    for name in CASES:
        # What rank 1 begins with is not what counts.
        values, losses = fitted(name, disturbed=rank == 1)
        found |= {f"{name}/{label}": value for label, value in values.items()} | {f"{name}/losses": losses}
    again, _ = fitted("learned neurons")
    found |= {f"again/{label}": value for label, value in again.items()}
    alone, _ = fitted("learned neurons", distributed=False, seed=rank)
    found |= {f"alone/{label}": value for label, value in alone.items()}
    found |= {f"stopped/{label}": value for label, value in stopped(rank, folder / "stopped.safetensors")}
    whole, _ = fitted("learned neurons", epochs=3)
    found |= {f"whole/{label}": value for label, value in whole.items()}
    return found | {f"refused/{what}": np.array(said) for what, said in others(rank)}


def train(folder, rank):
    wide = bool(os.environ.get(WIDE))
    found = wide_parts(folder, rank) if wide else {}
    for name in NORMALISED if wide else ALWAYS:
        values, losses = fitted(name, disturbed=rank == 1)
        found |= {f"{name}/{label}": value for label, value in values.items()} | {f"{name}/losses": losses}
    found |= {f"watched/{what}": value for what, value in watched(folder)}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        data = folder / "data.npz"
        assert run_command(["train", str(folder / "together"), "--data", str(data), "--epochs", "2"]) == 0
    found["command/said"] = np.array(said.getvalue())
    np.savez(folder / f"rank{rank}.npz", **found)


def main():
    """Train in a process for each rank; they are forks, because importing torch once for all takes half the time."""
    import torch.distributed  # noqa: F401

    children = []
    for rank in range(int(os.environ["WORLD_SIZE"])):
        number = os.fork()
        if number == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            train(Path(sys.argv[1]), rank)
            return
        children.append(number)
    codes = [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in children]
    sys.exit(any(codes))


assert SAMPLES % 2 == 1, "shares are uneven"
main()
