"""Print the rows of the suites ``mapping`` and ``compile`` as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from snnc.benchmarks.growth import Row, cpu_seconds, growth


def mapping_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield one line for each net and machine: snnc's step, two lower bounds relative to it, and every baseline relative to it.

    All times except those of the published log are predicted. ``balance`` is the bound of a program whose work is spread evenly over the
    tiles, and ``ideal`` that of any program (docs/explanation/bounds.md); both are divided by the time of snnc's step.
    ``of log`` is the time of snnc's step divided by the log's.
    """
    others = list(dict.fromkeys(row["strategy"] for row in rows if row["strategy"] != "snnc"))
    head = f"{'net':22} {'target':8} {'step ms':>9} {'balance':>7} {'ideal':>6} {'tile KiB':>8} {'compile':>8} {'RSS MiB':>7} {'of log':>6}"
    yield head + "".join(f" {name:>12}" for name in others) + "   (baselines: their step over snnc's)"
    for (net, target), members in groupby(rows, key=lambda row: (row["net"], row.get("target"))):
        by_name = {row["strategy"]: row for row in members}
        snnc_row = by_name.get("snnc", {})
        baselines = "".join(f" {_over(by_name.get(name, {}), snnc_row):>12}" for name in others)
        yield f"{net:22} {target or '':8} {_snnc_columns(snnc_row)}{baselines}"
    for row in rows:
        if row.get("error"):
            yield f"{row['net']}, {row['strategy']}: {row['error']}"


def _snnc_columns(row: Row) -> str:
    if not row.get("fits"):
        return f"{'does not fit' if 'E313' in str(row.get('code')) else 'no plan':>57}"
    of_log = f"{row['step_ms'] / row['logged_ms']:6.2f}" if row.get("logged_ms") else f"{'':6}"
    ideal = row["ideal_cycles"] / row["step_cycles"]
    return (
        f"{row['step_ms']:9.4g} {row['balance']:7.2f} {ideal:6.3f} {row['peak_tile_bytes'] / 1024:8,.0f} "
        f"{row['compile_s']:6.2f} s {row['peak_rss_mb']:7,.0f} {of_log}"
    )


def _over(row: Row, snnc_row: Row) -> str:
    """Return a baseline's step relative to snnc's, or in milliseconds if snnc has no plan.

    If the baseline does not fit: the KiB of its fullest tile, or "-" if they are unknown.
    """
    if row.get("fits") and snnc_row.get("fits"):
        return f"{row['step_cycles'] / snnc_row['step_cycles']:.2f} x"
    if row.get("fits"):
        return f"{row['step_ms']:.4g} ms"
    needed = row.get("peak_tile_bytes")
    return f"{needed / 1024:,.0f} KiB!" if needed else "-"


def compile_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield one line for each net, from small to large, with the time and memory of its compilation; then exponents of growth."""
    head = f"{'net':16} {'target':8} {'tiles':>7} {'neurons':>9} {'weights':>12} {'compile':>9} {'(emit)':>10} {'CPU':>9} {'RSS MiB':>7}"
    yield head + f" {'s / M weights':>13}"
    for row in sorted(rows, key=lambda row: row.get("weights", 0)):
        if not row.get("fits"):
            yield f"{row['net']:16} {row.get('error', '')}"
            continue
        sizes = f"{row['tiles_used']:7,d} {row['neurons']:9,d} {row['weights']:12,d}"
        yield (
            f"{row['net']:16} {row['target']:8} {sizes} {row['compile_s']:7.2f} s {row['emit_s']:8.2f} s {cpu_seconds(row):7.2f} s "
            f"{row['peak_rss_mb']:7,.0f} {1e6 * row['compile_s'] / row['weights']:13.3f}"
        )
    exponents = ((name, growth(rows, key)) for name, key in (("weights", "weights"), ("tiles", "tiles_used")))
    powers = [f"{name}^{power:.2f}" for name, power in exponents if power is not None]
    if powers:
        yield f"CPU seconds grow as {', '.join(powers)} (1 is linear)"
