"""Train with few spikes and a moving second threshold: ``python benchmarks/scripts/training/sparse_training.py --data strokes``.

The script follows arXiv 2311.04386: four layers of weights, a capacity of 1, 5 or 10 % of each hidden layer, and a second threshold that
begins 99 below the threshold and moves half of the remaining way to 0.1 below it with each update. For comparison it also trains without a
capacity, and in two settings with a second threshold of 0.1 below the threshold from the first update. With a capacity, a regulariser
penalises rates of hidden neurons above it. The data are generated from a seed: pen strokes in the pixel format of N-MNIST, or words in the
file format of SHD. The networks are trained on the CPU.

The script prints a Markdown table of the test accuracy after each epoch, mean and range over seeds. With ``--results`` each run is stored
as a line of JSON with its setting. Stored runs are not repeated, so several processes can share the work (``--only``). ``--recipe words``
runs one of the recipes and its dense training, and also prints the difference of their accuracies.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import snnc
from snnc.benchmarks.strokes import KINDS, strokes
from snnc.benchmarks.words import SECONDS, WORDS, write_words
from snnc.initialising.incoming import incoming_weights, scale_weights

STEPS, BATCH, TEST = 50, 48, 480
BETA = 0.95
HIDDEN = ("hidden1", "hidden2", "hidden3")
COLOURS = ("#222222", "#1b6ca8", "#2a9d5c", "#d07a1c", "#b3263b", "#8a5fb0")
WIDE, NARROW = -99.0, -0.1
"""Second threshold minus threshold, at the start and at the end of the schedule. :data:`WIDE` excludes no neuron from the gradient, but a
program compiled with it gives dropped spikes no gradient, as the published code does."""


@dataclass(frozen=True)
class Training:
    """Options in which the rows of the table differ."""

    share: float | None = None
    """Capacity of each hidden layer, as a share of its neurons; None: no capacity."""
    schedule: bool = True
    """Whether the second threshold moves as published; otherwise it is at its final value from the start."""
    fluctuating: bool = True
    """Whether initial weights are fluctuation-driven; otherwise they are PyTorch's."""


TRAININGS = {
    "dense": Training(),
    "10 %": Training(0.10),
    "5 %": Training(0.05),
    "1 %": Training(0.01),
    f"10 %, {NARROW} from the start": Training(0.10, schedule=False),
    f"10 %, {NARROW} from the start, default weights": Training(0.10, schedule=False, fluctuating=False),
}


@dataclass(frozen=True)
class Setting:
    """Further options of a run; without a recipe, all runs of a table have the same."""

    epochs: int = 10
    pressure: float | tuple[float, ...] = 3.0
    """Product of the regulariser's factor and the capacity (as a share of the neurons): one for all hidden layers, or one for each."""
    rate: str = "0.001"
    """Learning rate: a number or a schedule."""
    validation: bool = False
    """Whether accuracies are measured on validation samples (drawn from seed 3) instead of test samples (seed 2)."""
    widths: tuple[int, ...] = (1024, 512, 256)
    samples: int = 960
    gains: tuple[float, ...] = (1.0, 1.0, 1.0)
    """Factors of the fluctuation-driven weights into the hidden layers."""
    falling: tuple[float, int] | None = None
    """Capacity in % at the start, and the number of epochs in which it falls linearly to :attr:`Training.share`; None: constant."""
    batch: int = BATCH
    factor: float = 0.5
    """Factor of the distance between the second threshold and its final value, per update; the published code has 0.5."""
    average: int = 0
    """Number of last epochs; the mean of the weights after each is also tested (Izmailov et al. 2018, arXiv 1803.05407); 0: none."""


@dataclass(frozen=True)
class Recipe:
    """A training with a capacity, and the dense training with which it is compared."""

    data: str
    training: str
    setting: Setting
    dense: Setting


WIDTHS = (1472, 1024, 512)
"""Numbers of neurons of wide hidden layers, as in the published networks."""
RECIPES = {
    "words": Recipe(
        data="words",
        training="1 %",
        setting=Setting(epochs=6, pressure=2.0, rate="exponential:0.006,0.0001,0.99", widths=WIDTHS, batch=16, factor=0.98),
        dense=Setting(epochs=6, pressure=2.0, rate="exponential:0.003,0.0001,0.99", widths=WIDTHS, batch=16, factor=0.98),
    ),
    "strokes": Recipe(
        data="strokes",
        training="1 %",
        setting=Setting(epochs=6, pressure=2.0, rate="linear:0.004,0,epochs=6", widths=WIDTHS),
        dense=Setting(),
    ),
}
"""Recipes by name; ``examples/papers/sparse_words.toml`` has the same settings as "words".

The dense training of "strokes" has the default settings: narrower hidden layers and ten epochs.
"""


@dataclass(frozen=True, eq=False)
class Data:
    """Spikes [samples, T, inputs] and classes, for training and for test or validation."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: int


def data_of(name: str, samples: int, test_seed: int) -> Data:
    """Generate the strokes, or write the words in SHD's format and read them."""
    if name == "strokes":
        parts = [strokes(count, seed, STEPS, 4, 0.0005) for count, seed in ((samples, 1), (TEST, test_seed))]
        return Data(*parts[0], *parts[1], KINDS)
    arrays: list[np.ndarray] = []
    with tempfile.TemporaryDirectory() as folder:
        for count, seed in ((samples, 1), (TEST, test_seed)):
            path = Path(folder) / f"{seed}.h5"
            write_words(path, count, seed)
            events, labels = next(iter(snnc.data.shd(path).map(snnc.data.Bin(steps=STEPS, duration=SECONDS)).batches(count)))
            arrays += [np.ascontiguousarray(events.dense(np.uint8).swapaxes(0, 1)), labels]
    return Data(*arrays, WORDS)


def network(inputs: int, classes: int, seed: int, widths: tuple[int, ...]) -> snnc.Network:
    """Return a network of four layers of weights; neurons reset to 0, as in the published code."""
    net = snnc.Network("sparse", seed=seed)
    before = net.input(inputs)
    for name, width in zip(HIDDEN, widths, strict=True):
        layer = net.population(width, snnc.LIF(BETA, reset="zero"), name=name)
        net.connect(before, layer, snnc.Dense())
        before = layer
    net.connect(before, net.population(classes, snnc.LI(0.95), name="readout"), snnc.Dense())
    return net


def pressures_of(setting: Setting) -> tuple[float, ...]:
    return setting.pressure if isinstance(setting.pressure, tuple) else (setting.pressure,) * len(HIDDEN)


def initial(data: Data, seed: int, setting: Setting) -> Any:
    """Return a network with fluctuation-driven weights, those into each hidden layer multiplied by its gain."""
    net = network(data.x.shape[2], data.classes, seed, setting.widths)
    graph = snnc.initialise(net, snnc.FluctuationDriven(rate=0.01, xi=2, steps=STEPS), data=data.x[:BATCH].swapaxes(0, 1), seed=seed)
    weights = incoming_weights(graph)
    for layer, gain in zip(HIDDEN, setting.gains, strict=True):
        for one in weights[layer]:
            scale_weights(graph, one.name, gain)
    return graph


def first_weights(training: Training, data: Data, seed: int, setting: Setting) -> Any:
    """Return the network with which a training run starts."""
    return initial(data, seed, setting) if training.fluctuating else network(data.x.shape[2], data.classes, seed, setting.widths).graph()


def firing(training: Training, seed: int, data: Data, setting: Setting) -> list[tuple[float, float]]:
    """Return the mean spikes per sample and step that each hidden layer fires and sends in a batch, before training."""
    graph, share = first_weights(training, data, seed, setting), training.share
    operations = [incoming_weights(graph)[layer][0].operation for layer in HIDDEN]
    capacity = [snnc.Share(100 * (share or 1.0)).of(width) for width in setting.widths]
    potential, fired = ([np.zeros((BATCH, width), np.float32) for width in setting.widths] for _ in range(2))
    sums = np.zeros((len(HIDDEN), 2))
    for step in range(data.x.shape[1]):
        sent = data.x[:BATCH, step].astype(np.float32)
        for n, operation in enumerate(operations):
            bias = 0.0 if operation.bias is None else operation.bias
            potential[n] = BETA * potential[n] * (1 - fired[n]) + sent @ operation.weight.T + bias
            fired[n] = (potential[n] > 1).astype(np.float32)
            sent = fired[n] * (fired[n].cumsum(axis=1) <= capacity[n])
            sums[n] += fired[n].sum(), sent.sum()
    return [(float(f), float(s)) for f, s in sums / (BATCH * data.x.shape[1])]


def train(training: Training, seed: int, data: Data, setting: Setting) -> dict[str, Any]:
    """Return the test accuracy after each epoch, and the mean number of dropped spikes per sample and step, in training and tests."""
    net = first_weights(training, data, seed, setting)
    loss, share = snnc.losses.CrossEntropy("mean membrane"), training.share
    limits: dict[str, Any] = {}
    schedule = None
    if share is not None:
        capacity = 100 * share
        if setting.falling is not None:
            largest, epochs = setting.falling
            schedule = dict.fromkeys(HIDDEN, snnc.Share(snnc.Linear(largest, capacity, epochs=epochs)))
            capacity = largest
        limits = {"mode": "drop", "capacity": dict.fromkeys(HIDDEN, snnc.Share(capacity)), "gradient_window": WIDE}
        for name, pressure in zip(HIDDEN, pressures_of(setting), strict=True):
            loss = loss + (pressure / share) * snnc.losses.Upper(share, name)
    chosen = {"loss": loss, "optimizer": snnc.Adam(1e-3), "surrogate": "superspike", "steps": STEPS, "threads": 1, **limits}
    accuracies: list[float] = []
    weights: list[dict[str, np.ndarray]] = []
    with snnc.compile(net, "cpu", **chosen) as session:

        def measure(_: object) -> None:
            accuracies.append(session.evaluate(data.test_x, data.test_y))
            weights[:] = [*weights, session.state_dict()][-setting.average :] if setting.average else []

        window = None if share is None else snnc.schedules.Exponential(WIDE, NARROW, setting.factor) if training.schedule else NARROW
        session.fit(
            data.x,
            data.y,
            epochs=setting.epochs,
            batch=setting.batch,
            seed=seed,
            gradient_window=window,
            capacity=schedule,
            learning_rate=setting.rate,
            on_epoch=measure,
        )
        dropped = session.counters()["dropped_spikes"] / (setting.epochs * (len(data.y) + len(data.test_y)) * STEPS)
        if not weights:
            return {"accuracy": accuracies, "dropped": dropped}
        session.load_state_dict({name: np.mean([one[name] for one in weights], axis=0) for name in weights[0]})
        return {"accuracy": accuracies, "dropped": dropped, "averaged": session.evaluate(data.test_x, data.test_y)}


Run = tuple[str, str, int, Setting]
"""Data, training, seed and setting of a run."""


def runs(path: Path | None) -> dict[Run, dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    stored = map(json.loads, lines)
    return {(run["data"], run["training"], run["seed"], setting_of(run.get("setting", {}))): run for run in stored}


def setting_of(stored: dict[str, Any]) -> Setting:
    """Read the setting of a stored run; ``balanced``, which is false in all of them, is not a setting."""
    pressure = stored.get("pressure", Setting.pressure)
    return replace(
        Setting(**{name: value for name, value in stored.items() if name != "balanced"}),
        widths=tuple(stored.get("widths", Setting.widths)),
        pressure=tuple(pressure) if isinstance(pressure, list) else pressure,
        gains=tuple(stored.get("gains", Setting.gains)),
        falling=tuple(stored["falling"]) if stored.get("falling") is not None else None,
    )


def draw_curves(curves: dict[str, np.ndarray]) -> str:
    """Return the curves [seeds, epochs] as SVG: the mean of each, and the range of its seeds."""
    epochs = max(accuracies.shape[1] for accuracies in curves.values())
    left, top, wide, high = 52, 14, 420, 230

    def place(epoch: float, accuracy: float) -> str:
        return f"{left + wide * epoch / max(1, epochs - 1):.1f},{top + high * (1 - accuracy):.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {top + high + 44}" font-family="sans-serif" font-size="12">']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        y = top + high * (1 - tick)
        lines.append(f'<path d="M{left} {y:.1f}h{wide}" stroke="#dddddd"/>')
        lines.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:.0f} %</text>')
    for number, (name, accuracies) in enumerate(curves.items()):
        colour, trained_epochs = COLOURS[number], range(accuracies.shape[1])
        ends = [place(e, accuracies[:, e].max()) for e in trained_epochs]
        ends += [place(e, accuracies[:, e].min()) for e in reversed(trained_epochs)]
        lines.append(f'<polygon points="{" ".join(ends)}" fill="{colour}" opacity="0.15"/>')
        means = " ".join(place(e, accuracies[:, e].mean()) for e in trained_epochs)
        lines.append(f'<polyline points="{means}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{left + wide + 14}" y="{top + 16 + 20 * number}" fill="{colour}">{name}</text>')
    lines.append(f'<text x="{left + wide / 2}" y="{top + high + 34}" text-anchor="middle">epoch</text>')
    for epoch in range(epochs):
        x = left + wide * epoch / max(1, epochs - 1)
        lines.append(f'<text x="{x:.1f}" y="{top + high + 18}" text-anchor="middle">{epoch + 1}</text>')
    return "\n".join([*lines, "</svg>", ""])


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", choices=tuple(RECIPES), help="run a recipe and its dense training; replaces the settings below --seeds")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--data", choices=("strokes", "words"), default="strokes")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--pressure", type=float, nargs="+", default=[3.0], help="factor of the regulariser times the share (one or three)")
    parser.add_argument("--rate", default="0.001", help="learning rate of Adam, or a schedule: linear:0.002,0,epochs=10")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--factor", type=float, default=0.5, help="factor of the second threshold's distance from its end, by update")
    parser.add_argument("--samples", type=int, default=960)
    parser.add_argument("--widths", type=int, nargs=3, default=list(Setting.widths), help="numbers of neurons of the hidden layers")
    parser.add_argument("--only", choices=tuple(TRAININGS), nargs="+", default=list(TRAININGS))
    parser.add_argument("--validation", action="store_true", help="measure on validation instead of test samples, to choose settings")
    parser.add_argument("--average", type=int, default=0, metavar="EPOCHS", help="also test the mean weights of the last EPOCHS epochs")
    parser.add_argument("--gains", type=float, nargs=3, default=list(Setting.gains), help="factors of the weights into the hidden layers")
    parser.add_argument(
        "--falling", type=float, nargs=2, metavar=("PERCENT", "EPOCHS"), help="let the capacity fall from PERCENT in EPOCHS epochs"
    )
    parser.add_argument(
        "--start", action="store_true", help="print the spikes of a step that the hidden layers fire and send before training"
    )
    return parser


def chosen_setting(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> Setting:
    if len(chosen.pressure) not in (1, len(HIDDEN)):
        parser.error(f"--pressure needs 1 or {len(HIDDEN)} numbers, not {len(chosen.pressure)}")
    values = {field.name: getattr(chosen, field.name) for field in fields(Setting)}
    values |= {name: tuple(values[name]) for name in ("pressure", "widths", "gains")}
    if len(chosen.pressure) == 1:
        values["pressure"] = chosen.pressure[0]
    if chosen.falling is not None:
        values["falling"] = chosen.falling[0], int(chosen.falling[1])
    return Setting(**values)


def train_missing(kind: str, settings: dict[str, Setting], seeds: list[int], results: Path | None) -> dict[str, dict[int, dict[str, Any]]]:
    """Return the runs of each training by seed; those that `results` lacks are run and added to it."""
    results_by_seed: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in settings}
    data: Data | None = None
    for seed in seeds:
        for name, setting in settings.items():
            done = runs(results).get((kind, name, seed, setting))
            if done is None:
                data = data or data_of(kind, setting.samples, 3 if setting.validation else 2)
                done = {"data": kind, "training": name, "seed": seed, "setting": asdict(setting)}
                done |= train(TRAININGS[name], seed, data, setting)
                if results is not None:
                    with results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(done) + "\n")
            results_by_seed[name][seed] = done
    return results_by_seed


def below(sparse: dict[int, dict[str, Any]], dense: dict[int, dict[str, Any]]) -> str:
    """Return by how many points sparse training ends below dense training: mean over the seeds that both have, and standard error."""

    def means(run: dict[str, Any]) -> np.ndarray:
        return 100 * np.array([run["accuracy"][-1], np.mean(run["accuracy"][-3:])])

    points = np.array([means(dense[seed]) - means(sparse[seed]) for seed in sparse if seed in dense])
    errors = points.std(axis=0, ddof=1) / np.sqrt(len(points)) if len(points) > 1 else np.full(2, np.nan)
    of_end, of_last = (f"{mean:.1f} (standard error {error:.1f})" for mean, error in zip(points.mean(axis=0), errors, strict=True))
    return f"{of_end} points below dense training at the last epoch, {of_last} in the mean of the last three, {len(points)} seeds"


def print_row(name: str, results: list[dict[str, Any]], average: int, epochs: int) -> None:
    """Print a row of a table with `epochs` columns of epochs; with `average`, print before it a line with the accuracy of mean weights."""
    cells = [f"{of.mean():.1f} ({of.min():.1f}-{of.max():.1f})" for of in 100 * np.array([run["accuracy"] for run in results]).T]
    cells += [""] * (epochs - len(cells))
    if average:
        means = 100 * np.array([run["averaged"] for run in results])
        print(f"{name}: {means.mean():.1f} ({means.min():.1f}-{means.max():.1f}) with the mean weights of {average} epochs")
    print(f"| {name} | {len(results)} | {' | '.join(cells)} | {np.mean([run['dropped'] for run in results]):.1f} |", flush=True)


def main() -> None:
    parser = arguments()
    chosen = parser.parse_args()
    if chosen.recipe is None:
        setting = chosen_setting(parser, chosen)
        kind, settings = chosen.data, dict.fromkeys(chosen.only, setting)
    else:
        recipe = RECIPES[chosen.recipe]
        kind, settings, setting = recipe.data, {"dense": recipe.dense, recipe.training: recipe.setting}, recipe.setting
    if chosen.start:
        data = data_of(kind, setting.samples, 3 if setting.validation else 2)
        for name, own_setting in settings.items():
            spikes = firing(TRAININGS[name], chosen.seeds[0], data, own_setting)
            print(f"{name}: fired / sent", *(f"{fired:.2f} / {sent:.2f}" for fired, sent in spikes))
        return
    results = train_missing(kind, settings, chosen.seeds, chosen.results)
    most = max(one.epochs for one in settings.values())
    epochs = " | ".join(f"epoch {e + 1}" for e in range(most))
    print(f"| training | seeds | test accuracy after {epochs} | dropped spikes per sample and step |")
    print("|---|" + "---|" * (most + 2))
    for name, by_seed in results.items():
        print_row(name, list(by_seed.values()), setting.average, most)
    if chosen.recipe is not None:
        print(f"{recipe.training}: {below(results[recipe.training], results['dense'])}")
    if chosen.plot is not None:
        curves = {name: np.array([run["accuracy"] for run in by_seed.values()]) for name, by_seed in results.items()}
        chosen.plot.write_text(draw_curves(curves), encoding="utf-8")


if __name__ == "__main__":
    main()
