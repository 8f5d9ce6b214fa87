"""``snnc targets``: the machines that snnc knows."""

from __future__ import annotations

import typer

from snnc.console import result, result_json


def targets(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the machines that --target knows.

    Example: snnc targets
    """
    from snnc.compiler.targets import load_target, target_names

    machines = [load_target(name) for name in target_names()]
    if as_json:
        from dataclasses import asdict

        result_json([asdict(m) for m in machines])
        return
    result(f"{'target':10} {'chips':>5} {'tiles':>7} {'memory':>10}  clock")
    for m in machines:
        memory = m.tiles * m.tile_bytes / 2**20
        result(f"{m.name:10} {m.chips:5d} {m.tiles:7,d} {memory:6,.0f} MiB  {m.clock_hz / 1e9:.3g} GHz")
    result("reference  the NumPy backend: any network, no machine needed")
    result("A TOML file of your own describes another machine: --target my_machine.toml")
