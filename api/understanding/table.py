"""The description of a model as lines of text."""

from __future__ import annotations

import io
import textwrap
from typing import Any, Final

WIDTH: Final = 120
"""Text width in columns if the terminal's width is unknown."""
NARROWEST: Final = 60
"""Minimum text width in columns."""
EQUATIONS: Final = "One step of each neuron, in this order; [t-1] is the previous step, and H(x > y) is 1 where x > y, else 0."


def to_text(description: dict[str, Any], width: int | None = None) -> list[str]:
    """Return the result of :func:`~snnc.understanding.describe.describe` as lines of text, wrapped at `width` columns (60 or more)."""
    columns = max(width or WIDTH, NARROWEST)
    lines = [
        *textwrap.wrap(_head(description), columns, subsequent_indent="  "),
        "",
        *_table(description, columns),
        *_totals(description, columns),
    ]
    if any(neuron["equations"] for neuron in description["neurons"]):
        lines += ["", *textwrap.wrap(EQUATIONS, columns)]
    for neuron in description["neurons"]:
        lines += ["", *_neuron(neuron, columns)]
    lines += [""] if description["recurrences"] or description["outputs"] else []
    lines += _wrapped("recurrent", [_recurrence(r) for r in description["recurrences"]], columns)
    lines += _wrapped("output", [f"{o['name']}: {_readout(o)}" for o in description["outputs"]], columns)
    lines += _wrapped("state", [f"{name}: the initial {where}" for name, where in description["states"].items()], columns)
    return [_printable(line) for line in lines]


def assumption_lines(description: dict[str, Any], width: int | None = None) -> list[str]:
    """Return the assumptions as lines: one text per subject, then the notes of the frontend."""
    columns = max(width or WIDTH, NARROWEST)
    lines = ["", "assumptions"]
    for statement in description["statements"]:
        lines += _wrapped(statement["about"], [statement["text"]], columns)
    lines += _wrapped("note", description["assumptions"], columns)
    return [_printable(line) for line in lines]


def _head(description: dict[str, Any]) -> str:
    steps = "any number of steps" if description["steps"] is None else f"{description['steps']} steps"
    layers, neurons = len(description["layers"]), sum(layer["neurons"] for layer in description["layers"])
    where = f"{neurons:,} neurons in {layers} {'layer' if layers == 1 else 'layers'}"
    return f"{description['name']}: {where}, {steps}, {description['parameters']:,} parameters"


def _table(description: dict[str, Any], columns: int) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    measured = description["synops"]["measured"] is not None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="", show_edge=False)
    heads: list[tuple[str, Any]] = [("layer", "left"), ("what it is", "left"), ("shape", "left"), ("parameters", "right")]
    heads += [("SynOps/step at most", "right"), *([("measured", "right")] if measured else [])]
    for title, side in heads:
        table.add_column(Text(title), justify=side, overflow="fold", no_wrap=title in ("shape", "measured"))
    for row in description["table"]:
        shape = "x".join(map(str, row["shape"])) or "1"
        cells = [row["name"], _what(row), shape, _parameters(row), _at_most(row)]
        table.add_row(*(Text(_printable(cell)) for cell in [*cells, *([_measured(row)] if measured else [])]))
    stream = io.StringIO()
    Console(file=stream, width=columns - 2, color_system=None, legacy_windows=False).print(table)
    return [f"  {line.rstrip()}" for line in stream.getvalue().splitlines()]


def _what(row: dict[str, Any]) -> str:
    return str(row["kind"]) + (f", from {' + '.join(row['from'])}" if row["from"] and not row["kind"].startswith("input") else "")


def _parameters(row: dict[str, Any]) -> str:
    if not row["parameters"]:
        return ""
    if row["learnable"] in (0, row["parameters"]):
        return f"{row['parameters']:,}{'*' if row['learnable'] else ' '}"
    return f"{row['parameters']:,} ({row['learnable']:,}*)"


def _at_most(row: dict[str, Any]) -> str:
    if "synops_at_most" in row:
        return f"{row['synops_at_most']:,} {row['counted_as']:<3}"
    return f"({row['other_operations']:,})   " if row.get("other_operations") else ""


def _measured(row: dict[str, Any]) -> str:
    if "synops_measured" in row:
        return f"{_number(row['synops_measured'])} {row['measured_as']:<3}"
    return f"{100 * row['rate']:.2f} % fire" if "rate" in row else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}"


def _totals(description: dict[str, Any], columns: int) -> list[str]:
    synops = description["synops"]
    lines = []
    if any(row["learnable"] for row in description["table"]):
        lines.append("* changed by training")
    lines.append(f"SynOps per step and sample, at most: {_sum(synops['at_most'])} (one per synapse)")
    if synops["measured"] is not None:
        m = synops["measured"]
        lines.append(f"SynOps per step and sample, measured on {m['samples']:,} samples, {m['steps']:,} steps of {m['source']}: {_sum(m)}")
    lines.append("AC: a spike adds a weight. MAC: a graded value is multiplied by it.")
    if synops["other_operations"]:
        lines.append(f"In brackets: pooling and scaling, {synops['other_operations']:,} operations per step, counted separately.")
    if synops["graded_inputs"]:
        named = ", ".join(synops["graded_inputs"])
        lines.append(f"If {named} only contains 0 and 1, --input-kind spikes counts its synapses as AC.")
    if synops["zero_weights"]:
        lines.append(f"{synops['zero_weights']:,} of the weights are 0; they are stored and therefore counted.")
    return ["", *(part for line in lines for part in textwrap.wrap(line, columns - 2, initial_indent="  ", subsequent_indent="    "))]


def _sum(counts: dict[str, Any]) -> str:
    known = [(kind, counts[kind]) for kind in ("AC", "MAC") if counts[kind]]
    return " + ".join(f"{_number(n) if isinstance(n, float) else format(n, ',')} {kind}" for kind, n in known) or "0"


def _neuron(neuron: dict[str, Any], columns: int) -> list[str]:
    lines = textwrap.wrap(f"{neuron['neuron']}: {', '.join(neuron['populations'])}", columns, subsequent_indent="  ")
    for equation in neuron["equations"]:
        lines += textwrap.wrap(equation, columns, initial_indent="    ", subsequent_indent="        ", break_long_words=False)
    if neuron["with"]:
        lines += textwrap.wrap(f"with {', '.join(neuron['with'])}", columns, initial_indent="  ", subsequent_indent="    ")
    if neuron["fires"] is not None:
        parts = [f"fires {neuron['fires']}"] + ([f"reset: {neuron['reset']}"] if neuron["reset"] else [])
        lines += textwrap.wrap("; ".join(parts), columns, initial_indent="  ", subsequent_indent="    ")
    return lines


def _recurrence(group: dict[str, Any]) -> str:
    names = ", ".join(group["populations"])
    delays = ", ".join(map(str, group["delays"]))
    words = "feeds itself" if len(group["populations"]) == 1 else "feed each other"
    return f"{names} {words}, {delays} {'step' if delays == '1' else 'steps'} later"


def _readout(output: dict[str, Any]) -> str:
    how = {"all": "at every step", "last": "of the last step", "sum": "summed over the steps", "mean": "mean over the steps"}
    how |= {"max": "largest over the steps", "min": "smallest over the steps"}
    start, stop = output["start"], output["stop"]
    window = "" if not start and stop is None else f" from {start}" + ("" if stop is None else f" to {stop - 1}")
    return f"{', '.join(output['of'])}, {how[output['readout']]}{window}"


def _wrapped(label: str, texts: list[str], columns: int) -> list[str]:
    lines = []
    for text in texts:
        start = f"  {label:<15}"
        lines += textwrap.wrap(text, columns, initial_indent=start, subsequent_indent=" " * len(start))
    return lines


def _printable(text: str) -> str:
    """Return `text` with unprintable characters replaced: names come from files, and must not control a terminal."""
    return "".join(c if c.isprintable() else "�" for c in text)
