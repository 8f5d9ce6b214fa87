"""Write errors.md, cli.md, options.md and training.md from the installed snnc: ``python docs/reference/make_reference.py``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import typer

import snnc
from snnc.backends.registry import BACKENDS
from snnc.checks.training_cells import HIDDEN, loss_rows, optimizer_rows, precision_rows, refusal, schedule_rows
from snnc.cli.main import make_app
from snnc.compiler.errors import SnncError
from snnc.options.table import RULES, taken_by

LEVELS = {
    "0": "The network",
    "1": "Neurons, and networks written in Python",
    "2": "ONNX files",
    "3": "Mapping onto a machine",
    "4": "Building and running programs",
    "5": "Data, options and the command line",
    "6": "Training, and folders of other versions",
    "7": "NIR files",
}
ERRORS = """# Errors

For users who met an error code: this page lists all codes and their meaning.

Every error that a user can repair has a class of its own and a code that never changes. The command line prints it as one line on stderr,
`error: SNNC-E111: …`, and exits with 2 (with 3 where a tool is missing from the machine). Programs catch `snnc.SnncError` or one of its
subclasses. The message says what is wrong, where, the numbers, and what helps. `SNNC_DEBUG=1` adds a traceback.

This page is written by `make_reference.py`; a test compares it with the classes.
"""
CLI = """# Command line

For users of the command line: this page lists all commands and their options.

Results go to stdout, notes, warnings, errors and progress to stderr. With `--json` stdout is JSON and nothing else (for a network that does not
fit, `{"error": …}` with the numbers and the options that help). Exit codes: 0 for success; 2 for an error
with a [code](errors.md); 3 for a missing tool; 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP. Files and folders appear completely or not at all. A file
that you name is replaced, but never one that the command reads or that belongs to a project (SNNC-E418). Arrays are read from npz archives
without pickle. This page is written by `make_reference.py`.
"""
OPTIONS = """# Options and targets

For users who choose options: this page lists the options of `snnc.compile` (and of `snnc compile`, with dashes: `--gradient-window`) that each target accepts. A machine is any target of `snnc targets` that
has tiles, on one chip or several, and any TOML file; `poptorch:MACHINE` is a package for PopTorch.

- **yes**: the option has its effect.
- **with a loss**: the option changes training only. Without a loss it is refused: [SNNC-E553](errors.md).
- **refused**: the target has no use for it: [SNNC-E552](errors.md). The message names the targets that accept it, and an alternative.

A default value is never refused, even if it is given, and neither is a value without effect: `parts=1`, `recompute="off"`, `streaming="off"`.
Every target accepts `--data` and `--seed` together with `--run`, which runs a batch at once. `dt` is for NIR files;
other models refuse it ([SNNC-E555](errors.md)). A project that runs on another target (`--target`) keeps the options that this target
accepts; a warning appears if the results may differ.

This page is written by `make_reference.py` from the table that also checks the options; a test tries every cell of it.

"""


TRAINING = """# Losses, optimisers and schedules on targets

For users who train: this page lists the [losses](../howto/losses.md), [optimisers](../howto/optimizers.md), learning rates and precisions that each target accepts. Each row is
the text for the command line. **yes**: values, gradients and updates agree with those of the target `reference` to 1e-5, which agree with those of
PyTorch and snnTorch to 1e-4. A code: the target refuses it before anything is built, for the reason given below the table.

This page is written by `make_reference.py`, which asks each target; tests train every row, and check that no
combination of a loss and an optimiser has a code that neither of them has alone.

A package for PopTorch trains with its own `train.py`, where PopTorch accumulates (`--accumulation`) and the learning rate is constant; a
session of it runs the network and refuses `fit` ([SNNC-E510](errors.md)).

"""


PRECISION = """**yes**: the program stores these numbers as 16 bits ([which layers and numbers](../howto/half-precision.md)). With `half=`, the targets that
accept a row round at the same places as `reference`; `precision=` alone rounds other numbers on `cuda` than on machines.
"""

PEERS = "snnc.benchmarks.cpu.engines."
"""Modules that import other frameworks; they define no errors, nor do those that import PyTorch."""


def error_classes() -> list[type[SnncError]]:
    """Return all error classes of snnc, by code."""
    for package in ("snnc", "snnc.compiler", "snnc.frontends", "snnc.backends"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            if not module.name.startswith(PEERS):
                import_unless_torch_is_missing(module.name)
    found: list[type[SnncError]] = []
    waiting: list[type[SnncError]] = [SnncError]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting += kind.__subclasses__()
    return sorted({kind for kind in found if kind.__module__.startswith("snnc.")}, key=lambda kind: kind.code)


def import_unless_torch_is_missing(name: str) -> None:
    """Import a module; one that needs PyTorch is left out where that is not installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise


def errors_page() -> str:
    lines = [ERRORS]
    level = ""
    for kind in error_classes():
        if kind.code[6] != level:
            level = kind.code[6]
            lines += [f"\n## {LEVELS[level]}\n", "| code | class | meaning |", "|---|---|---|"]
        meaning = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
        lines.append(f"| `{kind.code}` | `{kind.__name__}` | {meaning} |")
    return "\n".join(lines) + "\n"


def cli_page() -> str:
    lines = [CLI]
    group = typer.main.get_command(make_app())
    for name, command in group.commands.items():
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        example = next(p for p in paragraphs if p.startswith("Example: ")).removeprefix("Example: ")
        lines += [
            f"## snnc {name}\n",
            *(f"{' '.join(p.split())}\n" for p in paragraphs if not p.startswith("Example: ")),
            f"```sh\n{example}\n```\n",
        ]
        lines += ["| option | meaning |", "|---|---|"]
        for option in command.params:
            names = (
                ", ".join(f"`{o}`" for o in option.opts)
                if option.param_type_name == "option"
                else f"`{option.metavar or option.name.upper()}`"
            )
            lines.append(f"| {names} | {(getattr(option, 'help', '') or '').replace('|', '/')} |")
        lines.append("")
    return "\n".join(lines)


def options_page() -> str:
    heads = ("option", "what it does", *(backend.words.partition(" ")[0] for backend in BACKENDS))
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, rule in RULES.items():
        for value in (None, *rule.values):
            shown = f"`{name}`" if value is None else f"`{name}={value!r}`"
            if not (rule.values and value is None):
                lines.append(f"| {shown} | {rule.does} | {' | '.join(taken_by(name, backend, value) for backend in BACKENDS)} |")
    return OPTIONS + "\n".join(lines) + "\n"


def training_page() -> str:
    net = snnc.Network("example")
    hidden = net.population(10, snnc.LIF(beta=0.9), name=HIDDEN)
    net.connect(net.input(8, kind="spikes"), hidden)
    net.connect(hidden, net.population(6, snnc.LIF(beta=0.8), name="out"))
    graph, reasons = net.graph(), dict[str, str]()
    heads = [backend.words.partition(" ")[0] for backend in BACKENDS]
    lines = [TRAINING + "## Losses and regularisers", "", f"| loss | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [_training_row(graph, text, text, "sgd:0.1", reasons) for text in loss_rows()]
    lines += ["", "## Optimisers and their settings", "", f"| optimizer | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [_training_row(graph, text, "ce_count", text, reasons) for text in optimizer_rows()]
    lines += ["", "## Precision", "", PRECISION, f"| precision | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    lines += [_training_row(graph, text, "ce_count", "sgd:0.1", reasons, text) for text in precision_rows()]
    lines += ["", "Reasons:", "", *(f"- `{code}`: {text}" for text, code in reasons.items())]
    lines += ["", "## Schedules", "", "Every target whose session trains accepts every schedule, and `fit(accumulate=…)`:", ""]
    return "\n".join([*lines, *(f"- `{text}`" for text in schedule_rows())]) + "\n"


def _training_row(
    graph: object, shown: str, loss: str, optimizer: str, reasons: dict[str, str], precision: str = "precision=float32"
) -> str:
    found = [refusal(backend, graph, loss, optimizer, 5, precision) for backend in BACKENDS]
    for error in found:
        if error is not None:
            reasons[error.text] = error.code
    return f"| `{shown}` | {' | '.join('yes' if error is None else f'[{error.code}](errors.md)' for error in found)} |"


def main() -> None:
    here = Path(__file__).parent
    pages = {"errors": errors_page, "cli": cli_page, "options": options_page, "training": training_page}
    for name, page in pages.items():
        (here / f"{name}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
