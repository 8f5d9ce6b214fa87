"""Summarise a plan in six lines."""

from __future__ import annotations

from snnc.report.subject import Subject


def plan_lines(subject: Subject) -> list[tuple[str, str]]:
    """Return the six lines as (title, sentence) pairs."""
    plan = subject.plan
    memory, cycles = plan.tile_memory, plan.cycles
    busiest = plan.fullest_tile
    name = max(plan.memory, key=lambda category: plan.memory[category][busiest])
    parts = {kind: sum(p.runs * getattr(p, kind) for p in plan.phases) / cycles for kind in ("compute", "exchange", "sync")}
    stages = 1 + max(p.stage for p in plan.populations)
    blocks = int((subject.places.owner >= 0).sum())
    relays = len({r.tile for b in plan.buses for r in b.relays})
    kind = "training step" if plan.training else "forward pass"
    sizes = " + ".join(f"{p.neurons:,}" for p in plan.populations[:6]) + (" + …" if len(plan.populations) > 6 else "")
    events = [b for b in plan.buses if b.kind == "events"]
    limited = [b for b in events if b.capacity < b.width]
    windows = ", ".join(f"{b.capacity:,} of {b.width:,}" for b in limited[:4]) + (" …" if len(limited) > 4 else "")
    activity = ", ".join(f"{100 * value:.3g} %" for value in list(plan.activity.values())[:6])
    return [
        (
            "network",
            f"{plan.name} on {plan.target.name}: {sizes} neurons, {many(len(plan.connections), 'connection')}, "
            f"T = {plan.steps}, batch {plan.batch}" + "".join(f"; {name} in {len(ids)} parts" for name, ids in plan.parts.items()),
        ),
        ("schedule", f"{many(plan.iterations, 'iteration')} of {many(stages, 'stage')}, {many(plan.interval, 'iteration')} a time step"),
        (
            "placement",
            f"{many(blocks, 'tile')} of neurons and {many(relays, 'relay tile')} of {plan.target.tiles:,} "
            f"({chips_used(subject)} of {many(plan.target.chips, 'chip')})",
        ),
        (
            "memory",
            f"{memory[busiest]:,} of {plan.target.tile_bytes:,} bytes on the fullest tile "
            f"({100 * memory[busiest] / plan.target.tile_bytes:.0f} %), most of it {name}",
        ),
        (
            "time",
            f"{1e3 * plan.seconds:.4g} ms a {kind} predicted, {plan.batch / plan.seconds:,.0f} samples/s "
            f"({', '.join(f'{kind} {100 * share:.0f} %' for kind, share in parts.items())})",
        ),
        (
            "activity",
            f"{activity or 'no spikes'} ({plan.activity_source}); windows hold "
            + (
                f"{windows} events, {'further ones follow' if limited[0].mode == 'exact' else 'more are dropped'}"
                if limited
                else "every event"
            ),
        ),
    ]


def chips_used(subject: Subject) -> int:
    """Return the number of chips with data."""
    used = subject.places.used
    return len(set((used // subject.plan.target.tiles_per_chip).tolist()))


def many(number: int, what: str) -> str:
    """Return a count with its noun: ``3 tiles``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
