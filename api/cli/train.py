"""``snnc train``: change the weights of a compiled project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnc.cli.common import JsonOption, ProjectArgument, RecordOption, TrustOption, permitted
from snnc.cli.console import Progress, note, result, result_json, result_now, warn, working

if TYPE_CHECKING:
    from snnc.backends.runtime.history import Epoch, History
    from snnc.backends.runtime.history import TrainingProgress as Stage
    from snnc.project.resuming import Settings
    from snnc.session import Session


def train(
    folder: ProjectArgument,
    data: Annotated[Path, typer.Option("--data", help="An npz archive: x [samples, steps, …], or each input by name, and y [samples].")],
    epochs: Annotated[int | None, typer.Option("--epochs", help="How often to go through the data (default 1).")] = None,
    first_epoch: Annotated[
        int | None,
        typer.Option("--first-epoch", help="Epochs that earlier runs made with these data and this seed: orders of samples go on."),
    ] = None,
    lr: Annotated[float | None, typer.Option("--lr", help="Learning rate; by default the one of the compilation.")] = None,
    accumulate: Annotated[
        int | None, typer.Option("--accumulate", help="Parts that the samples of an update are run in, to save memory.")
    ] = None,
    checkpoint_every: Annotated[
        str,
        typer.Option(
            "--checkpoint-every",
            metavar="TIME",
            help="Time between two checkpoints within an epoch: 30s, 5m, 1h; 0 or none: after epochs only.",
        ),
    ] = "5m",
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Go on with the training that was stopped, from its last checkpoint; --no-resume: begin another one with its weights.",
        ),
    ] = None,
    record: RecordOption = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the order; by default the one of the compilation.", min=0)] = None,
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Train a compiled project where it runs, and keep the weights in its folder.

    The optimiser's state is stored with the weights: training again continues where it stopped. Processes that torchrun starts train
    together, and the first of them writes: torchrun --nproc-per-node 2 -m snnc train build/ --data digits.npz

    Weights, what the optimiser keeps and the position are saved after every epoch and within it every --checkpoint-every. After Ctrl-C,
    SIGTERM or a crash the same command with --resume goes on, and ends with the same bits as a training that nobody stopped.

    Example: snnc train build/ --data digits.npz --epochs 5
    """
    from snnc.backends.folders.folder_lock import locked
    from snnc.backends.training.checkpoint import seconds_of
    from snnc.backends.training.ranks import leads
    from snnc.data.arrays import pick, read_arrays
    from snnc.driver.loading import is_project, load_project
    from snnc.project.resuming import Settings, settings_for

    seconds_of(checkpoint_every)
    arrays = read_arrays(data)
    y = pick(arrays, "y", data)
    if not is_project(folder):
        load_project(folder)
    trust = permitted(folder, trust)
    with locked(folder, "trains") if leads() else nullcontext():
        settings = settings_for(folder, Settings(epochs, first_epoch, lr, accumulate, seed, resume))
        with working("building"):
            session = _opened(folder, settings, trust)
        with session, _hint(folder, data):
            names = [info.label for info in session.program.inputs]
            alone = len(names) == 1 and names[0] not in arrays
            x = pick(arrays, "x", data) if alone else {name: pick(arrays, name, data) for name in names}
            history = _fit(session, folder, x, y, settings, checkpoint_every, as_json)
            if not leads():
                return
            session.keep()
            if record is not None:
                session.record_samples(x, record)
            cycles = session.cycles()
    _show(folder, history, cycles, as_json)


def _opened(folder: Path, settings: Settings, trust: bool) -> Session:
    """Open the project; weights that cannot be used are put aside, so that the training can write others."""
    from snnc.backends.training.ranks import leads
    from snnc.driver.compiling import open as open_project
    from snnc.driver.compiling import open_strictly
    from snnc.errors import TrainedWeightsError
    from snnc.project.trained import put_useless_aside

    try:
        return open_strictly(folder, trust=trust)
    except TrainedWeightsError as error:
        if settings.resume:
            raise
        if leads():
            warn(f"{error.text} This training begins with the compiled weights; the file becomes {put_useless_aside(folder)}.")
    return open_project(folder, trust=trust)


def _fit(session: Session, folder: Path, x: Any, y: Any, settings: Settings, every: str, as_json: bool) -> History:
    from snnc.backends.folders.manifest import TRAINED
    from snnc.backends.training.checkpoint import Checkpoints
    from snnc.backends.training.notices import reported_differences
    from snnc.backends.training.ranks import leads

    tell = note if as_json else result_now

    def show_epoch(epoch: Epoch) -> None:
        if leads():
            tell(f"epoch {epoch.number + 1}: loss {epoch.loss:.4f}, {epoch.seconds:.1f} s")

    epochs = 1 if settings.epochs is None else settings.epochs
    with reported_differences(session.program, note), Progress("training", epochs) as bar:

        def show(stage: Stage) -> None:
            bar.update(stage.epoch + stage.batch / stage.batches, f"loss {stage.loss:.4f}")

        return session.fit(
            x,
            y,
            epochs=epochs,
            first_epoch=settings.first_epoch or 0,
            learning_rate=settings.learning_rate,
            seed=settings.seed,
            accumulate=1 if settings.accumulate is None else settings.accumulate,
            callback=show if leads() else None,
            on_epoch=show_epoch,
            checkpoints=Checkpoints(folder / TRAINED, every, bool(settings.resume)),
        )


@contextmanager
def _hint(folder: Path, data: Path) -> Iterator[None]:
    """Say how to go on when a training is stopped."""
    from snnc.backends.runtime.errors import DivergedError
    from snnc.backends.training.ranks import leads
    from snnc.project.resuming import position_of

    try:
        yield
    except DivergedError:
        if leads():
            note(f"to train on from the last good weights: snnc train {folder} --data {data} --no-resume --lr …")
        raise
    except Exception:
        raise
    except BaseException:
        found = position_of(folder) if leads() else None
        if found is not None and not found.finished:
            note(f"training is kept {found.text}; go on with: snnc train {folder} --data {data} --resume")
        raise


def _show(folder: Path, history: History, cycles: dict[str, float] | None, as_json: bool) -> None:
    from snnc.backends.folders.manifest import TRAINED

    if history.note:
        warn(history.note)
    if as_json:
        result_json({"loss": history.losses, "cycles": cycles, "seconds": history.seconds, "left_out": history.dropped})
        return
    if not history.losses:
        result("nothing is left to train: all epochs are over; give a larger --epochs, or leave out --resume.")
    if cycles:
        result(f"a training step: {cycles['counted']:,.0f} cycles counted by the emulator, {cycles['predicted']:,.0f} predicted")
    result(f"weights kept in {folder / TRAINED}")
