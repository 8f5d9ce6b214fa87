"""``snnc train``: change the weights of a compiled project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.commands.common import JsonOption, ProjectArgument, RecordOption, SeedOption
from snnc.console import Progress, result, result_json, warn, working


def train(
    folder: ProjectArgument,
    data: Annotated[Path, typer.Option("--data", help="An npz archive: x [samples, steps, …], or each input by name, and y [samples].")],
    epochs: Annotated[int, typer.Option("--epochs", help="How often to go through the data.")] = 1,
    first_epoch: Annotated[
        int,
        typer.Option("--first-epoch", help="Epochs that earlier runs made with these data and this seed: orders of samples go on."),
    ] = 0,
    lr: Annotated[float | None, typer.Option("--lr", help="Learning rate; by default the one of the compilation.")] = None,
    accumulate: Annotated[int, typer.Option("--accumulate", help="Parts that the samples of an update are run in, to save memory.")] = 1,
    record: RecordOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Train a compiled project where it runs, and keep the weights in its folder.

    What the optimiser keeps lies beside the weights: training again goes on where it stopped. Processes that torchrun starts train
    together, and the first of them writes: torchrun --nproc-per-node 2 -m snnc train build/ --data digits.npz

    Example: snnc train build/ --data digits.npz --epochs 5
    """
    from snnc.backends.history import Progress as Stage
    from snnc.backends.manifest import TRAINED
    from snnc.backends.ranks import leads
    from snnc.compiling import open as open_project
    from snnc.data import pick, read_arrays

    arrays = read_arrays(data)
    y = pick(arrays, "y", data)
    with working("building"):
        session = open_project(folder)
    with session, Progress("training", epochs) as bar:

        def show(stage: Stage) -> None:
            bar.update(stage.epoch + stage.batch / stage.batches, f"loss {stage.loss:.4f}")

        names = [info.label for info in session.program.inputs]
        alone = len(names) == 1 and names[0] not in arrays
        x = pick(arrays, "x", data) if alone else {name: pick(arrays, name, data) for name in names}
        history = session.fit(
            x,
            y,
            epochs=epochs,
            first_epoch=first_epoch,
            learning_rate=lr,
            seed=seed,
            accumulate=accumulate,
            callback=show if leads() else None,
        )
        if not leads():
            return
        session.save(folder / TRAINED, optimizer=True)
        session.keep()
        if record is not None:
            session.record_samples(x, record)
        cycles = session.cycles()
    if history.note:
        warn(history.note)
    if as_json:
        result_json({"loss": history.losses, "cycles": cycles, "seconds": history.seconds, "left_out": history.dropped})
        return
    for epoch, (loss, seconds) in enumerate(zip(history.losses, history.seconds, strict=True), first_epoch + 1):
        result(f"epoch {epoch}: loss {loss:.4f}, {seconds:.1f} s")
    if cycles:
        result(f"a training step: {cycles['counted']:,.0f} cycles counted by the emulator, {cycles['predicted']:,.0f} predicted")
    result(f"weights kept in {folder / TRAINED}")
