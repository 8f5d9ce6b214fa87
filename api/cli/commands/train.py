"""``snnc train``: train the weights of a compiled project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from snnc.cli.common import JsonOption, RecordOption, TrustOption, permitted
from snnc.cli.console import note, progress, result, result_json, result_now, warn, working
from snnc.cli.parameters import command, option

if TYPE_CHECKING:
    from snnc.backends.runtime.history import Epoch, History
    from snnc.backends.runtime.history import TrainingProgress as Stage
    from snnc.session import Session


@dataclass(frozen=True)
class TrainArguments:
    """Arguments of ``snnc train``."""

    folder: Annotated[Path, typer.Argument(help="A folder from snnc compile.", metavar="DIR")]
    data: str | None = option(
        "An npz archive with x [samples, steps, …], or each input by name, and y [samples]; or a data set, read batch by batch: "
        "shd:shd_train.h5, ssc:…, nmnist:Train, dvsgesture:…, mnist:train-images-idx3-ubyte.",
        metavar="FILE|KIND:PATH",
    )
    bin_steps: int | None = option("Number of time steps per sample of a data set; default: as the network.")
    bin_time: float | None = option("Length of a time step, for recorded events.", metavar="SECONDS")
    bin_duration: float | None = option("Length of all steps together, instead of --bin-time.", metavar="SECONDS")
    downsample: int | None = option("Number of neighbouring channels, or of rows and columns, merged into one.")
    polarity: str | None = option("Treatment of off and on events: as separate channels (channels, the default) or merged.")
    encoder: str | None = option("Encoder of images: rate (default), latency or repeat.")
    recipe: Path | None = option("A TOML file with training settings; options given here take precedence.")
    epochs: int | None = option("Number of passes over the data (default 1).")
    first_epoch: int | None = option("Number of epochs already trained with this data and seed; the order of samples continues from there.")
    lr: str | None = option("Learning rate: a number or a schedule such as cosine:0.1,epochs=20; default: as compiled.")
    gradient_window: str | None = option(
        "Gradient window within the compiled one: numbers or schedules, such as exponential:-100,-0.1; default: as compiled.",
        metavar="LOW[ to HIGH]",
    )
    capacity: str | None = option(
        "Maximum number of spikes that a source sends in a step, for projects compiled with --mode drop and --capacity: numbers, shares "
        "or schedules, such as '5 %; hidden=linear:64,14,epochs=10'.",
        metavar="SPIKES",
    )
    accumulate: int | None = option(
        "Number of parts into which the batch of an update is split, to save memory; on machines, number of batches per update."
    )
    validation: str | None = option("Validation data, like --data.", "--validation", "--validation-data", metavar="FILE|KIND:PATH")
    metrics: list[str] | None = option(
        "Additional metric of the validation data: top_3, f1, per_class, confusion or spikes; may be repeated.", "--metric"
    )
    monitor: str | None = option("Validation metric that selects the best epoch: loss or accuracy.")
    patience: int | None = option("Stop after this many epochs in a row without improvement.")
    min_delta: float | None = option("With --patience: improvements of this size or less do not count.")
    best: Path | None = option("File for the weights of the best epoch.")
    restore_best: bool = option("End with the weights of the best epoch (stored in model/best.safetensors, or --best).", default=False)
    log: Path | None = option("CSV file with a row per epoch.")
    tensorboard: Path | None = option("Folder for TensorBoard's event files.")
    checkpoint_every: str | None = option(
        "Time between two checkpoints within an epoch: 30s, 5m (default), 1h; 0 or none: only after epochs.", metavar="TIME"
    )
    resume: bool | None = option(
        "Continue an interrupted run from its last checkpoint; --no-resume: start a new run from its weights.", "--resume/--no-resume"
    )
    time_kernels: bool = option("On a GPU: time each kernel, for the report of the project; training is slower.", default=False)
    record: RecordOption = None
    seed: int | None = option("Seed for the order of samples; default: as compiled.", min=0)
    trust: TrustOption = False
    as_json: JsonOption = False


@command(TrainArguments)
def train(context: typer.Context, args: TrainArguments) -> None:
    """Train a compiled project on its own target, and store the weights in its folder.

    The optimiser's state is stored with the weights, so further training continues where it stopped. If torchrun starts several
    processes, they train together, and only the first one writes files:
    torchrun --nproc-per-node 2 -m snnc train build/ --data digits.npz

    Weights, the optimiser's state and the position in the data are saved after every epoch, and within an epoch at intervals of
    --checkpoint-every. After Ctrl-C, SIGTERM or a crash, the same command with --resume continues, with exactly the result of an
    uninterrupted run.

    Example: snnc train build/ --data digits.npz --epochs 5
    """
    from snnc.backends.folders.folder_lock import locked
    from snnc.backends.folders.manifest import TRAINED
    from snnc.backends.training.saving.checkpoint import EVERY, Checkpoints, seconds_of
    from snnc.backends.training.updates.ranks import leads
    from snnc.cli.train_data import data_names, open_data
    from snnc.data.named import Reading
    from snnc.driver.loading import is_project, load_project
    from snnc.project.resuming import settings_for

    folder, settings = args.folder, _settings(args)
    every = settings.pop("checkpoint_every", EVERY)
    seconds_of(every)  # an error before data and project are opened
    reading = Reading(args.bin_steps, args.bin_time, args.bin_duration, args.downsample, args.polarity, args.encoder)
    table, named_validation = settings.pop("data", {}), args.validation or settings.pop("validation", None)
    train_name, validation_name, reading = data_names(table, args.data, named_validation, reading)
    samples, validation = open_data(train_name), None if validation_name is None else open_data(validation_name)
    if not is_project(folder):
        load_project(folder)  # raises an error that says why
    trust = permitted(folder, args.trust)
    with locked(folder, "trains") if leads() else nullcontext():
        settings = settings_for(folder, settings, args.resume)
        with working("building"):
            session = _opened(folder, bool(args.resume), trust)
        with session, _hint_to_continue(folder, train_name if args.recipe is None else f"{train_name} --recipe {args.recipe}"):
            if args.time_kernels:
                session.time_kernels()
            x, y = samples.for_fit(session, reading)
            if validation is not None:
                settings["validation"] = validation.for_validation(session, reading)
            settings["checkpoints"] = Checkpoints(folder / TRAINED, every, bool(args.resume))
            history = _fit(session, (x, y), settings, args.as_json)
            if not leads():
                return
            session.keep()
            if args.record is not None:
                session.record_samples(x, args.record)
            cycles = session.cycles()
    _show(folder, history, cycles, args.as_json)


_SETTINGS: Final = (
    "epochs", "first_epoch", "gradient_window", "capacity", "accumulate", "seed", "metrics", "monitor", "patience", "min_delta",
    "best", "restore_best", "log", "tensorboard", "checkpoint_every",
)  # fmt: skip
"""Options that become arguments of ``fit`` of the same name, and ``checkpoint_every``."""


def _settings(args: TrainArguments) -> dict[str, Any]:
    """Return the settings of the recipe and the options, by names of the arguments of ``fit``; options take precedence."""
    from snnc.backends.folders.manifest import BEST
    from snnc.recipe import number_or_text, read_recipe

    values = {name: getattr(args, name) for name in _SETTINGS}
    settings = {} if args.recipe is None else read_recipe(args.recipe)
    settings |= {name: value for name, value in values.items() if not (value is None or value is False or value == [])}
    if args.lr is not None:
        settings["learning_rate"] = number_or_text(args.lr)
    if settings.get("restore_best"):
        settings.setdefault("best", args.folder / BEST)
    return settings


def _opened(folder: Path, resume: bool, trust: bool) -> Session:
    """Open the project; unless it is resumed, warn of unusable trained weights, rename their file and use the compiled weights."""
    from snnc.backends.training.updates.ranks import leads
    from snnc.driver.compiling import open_project
    from snnc.errors import TrainedWeightsError
    from snnc.project.trained import rename_unusable_weights

    try:
        return open_project(folder, trust)
    except TrainedWeightsError as error:
        if resume:
            raise
        if leads():
            warn(f"{error.text} Training starts from the compiled weights; the file is renamed to {rename_unusable_weights(folder)}.")
    return open_project(folder, trust, lenient=True)


def _fit(session: Session, samples: tuple[Any, Any], settings: dict[str, Any], as_json: bool) -> History:
    """Train, showing progress; `settings` are arguments of ``fit``."""
    from snnc.backends.training.notices import reported_differences
    from snnc.backends.training.updates.ranks import leads

    print_epoch = note if as_json else result_now

    def show_epoch(epoch: Epoch) -> None:
        if leads():
            print_epoch(epoch.text)
            accuracy[:] = [] if epoch.validation is None else [f", accuracy {100 * epoch.validation.accuracy:.1f} %"]

    accuracy: list[str] = []
    with reported_differences(session.program, note), progress("training", settings.get("epochs", 1)) as show_progress:

        def show(stage: Stage) -> None:
            show_progress(stage.epoch + stage.batch / stage.batches, f"loss {stage.loss:.4f}{''.join(accuracy)}")

        return session.fit(*samples, **settings, callback=show if leads() else None, on_epoch=show_epoch)


@contextmanager
def _hint_to_continue(folder: Path, data: str) -> Iterator[None]:
    """If training in the block is interrupted or diverges, print the command that continues it."""
    from snnc.backends.runtime.errors import DivergedError
    from snnc.backends.training.updates.ranks import leads
    from snnc.project.resuming import position_of

    try:
        yield
    except DivergedError:
        if leads():
            note(f"to continue from the last finite weights: snnc train {folder} --data {data} --no-resume --lr …")
        raise
    except Exception:
        raise
    except BaseException:
        position = position_of(folder) if leads() else None
        if position is not None and not position.finished:
            note(f"training is saved {position.text}; continue with: snnc train {folder} --data {data} --resume")
        raise


def _show(folder: Path, history: History, cycles: dict[str, float] | None, as_json: bool) -> None:
    from snnc.backends.folders.manifest import TRAINED
    from snnc.backends.training.validation.metrics import plain

    if history.note:
        warn(history.note)
    if as_json:
        validated = {"loss": [v.loss for v in history.validation], "accuracy": [plain(v.accuracy) for v in history.validation]}
        names = history.validation[0].metrics if history.validation else ()
        validated |= {name: [plain(v.metrics[name]) for v in history.validation] for name in names}
        shown = {"validation": validated, "best_epoch": history.best_epoch} if history.validation else {}
        result_json({"loss": history.losses, **shown, "cycles": cycles, "seconds": history.seconds, "left_out": history.dropped})
        return
    if not history.losses:
        result("all epochs are already trained; give a larger --epochs, or leave out --resume.")
    if history.best_epoch is not None:
        early = "; training stopped early" if history.stopped_early else ""
        result(f"best validation: epoch {history.best_epoch + 1}{early}")
    if cycles:
        result(f"a training step: {cycles['counted']:,.0f} cycles counted by the emulator, {cycles['predicted']:,.0f} predicted")
    result(f"weights stored in {folder / TRAINED}")
