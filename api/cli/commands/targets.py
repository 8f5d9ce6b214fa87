"""``snnc targets``: list and describe the targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from snnc.cli.console import result, result_json

if TYPE_CHECKING:
    from snnc.compiler.machines.target import Target


def targets(
    name: Annotated[str | None, typer.Argument(help="A machine or a TOML file, to be checked and printed.", metavar="TARGET")] = None,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List the targets; with the name of a machine, print its TOML file: the numbers that describe the machine, and where they come from.

    To describe your own machine, start from such a file: snnc targets gc200 > mine.toml

    Example: snnc targets
    """
    from snnc.backends.registry import named, synonyms
    from snnc.compiler.machines import load_target, target_names, target_text

    known = {backend.name: backend.about for backend in named()}
    chosen = (*known, *target_names()) if name is None else (name,)
    machines = [load_target(n, synonyms()) for n in chosen if n not in known]
    others = {n: known[n] for n in chosen if n in known}
    if as_json:
        from dataclasses import asdict

        rows: list[dict[str, Any]] = [{"name": n, "kind": n, "description": text} for n, text in others.items()]
        rows += [{**asdict(m), "kind": "machine"} for m in machines]
        result_json(rows if name is None else rows[0])
        return
    if name is not None and not others:
        for line in table(machines):
            result(f"# {line}")
        result(target_text(name, synonyms()).rstrip("\n"))
        return
    for line in table(machines) if machines else ():
        result(line)
    for other, text in others.items():
        result(f"{other:10} {text}")
    if name is None:
        result("A TOML file of your own describes another machine: --target my_machine.toml (snnc targets gc200 prints one to start from)")


def table(machines: list[Target]) -> list[str]:
    """Return the lines of the table; its column ``links`` is the bandwidth of all links of the best-connected chip, in one direction."""
    heads = f"{'target':10} {'chips':>5} {'tiles':>7} {'tile':>8} {'memory':>10} {'clock':>9} {'workers':>7} {'exchange':>10} {'links':>9} "
    lines = [heads + f"{'streaming':>10} {'fp32 MACs':>9}"]
    for m in machines:
        links = f"{m.link_bytes_per_second / 1e9:.0f} GB/s" if m.link_bytes_per_second else "-"
        streaming = f"{m.streaming.bytes_per_chip * m.chips / 2**30:,.0f} GiB" if m.streaming else "-"
        macs = f"{m.compute.fp32_macs_per_cycle:g}" if m.compute.fp32_macs_per_cycle else "-"
        lines.append(
            f"{m.name:10} {m.chips:5d} {m.tiles:7,d} {m.tile_bytes / 1024:4.0f} KiB {m.tiles * m.tile_bytes / 2**20:6,.0f} MiB "
            f"{m.clock_hz / 1e9:5.3g} GHz {m.workers:7d} {m.exchange_bytes_per_cycle:3g} B/cycle {links:>9} {streaming:>10} {macs:>9}"
        )
    return [*lines, "tile: memory per tile; exchange, fp32 MACs: per tile and cycle; links: per chip, one way; streaming: off-tile memory"]
