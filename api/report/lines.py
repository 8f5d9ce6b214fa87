"""Summarise a plan in six lines."""

from __future__ import annotations

from snnc.report.subject import Subject


def plan_lines(subject: Subject) -> list[tuple[str, str]]:
    """Return the six lines as (title, sentence) pairs."""
    plan, target = subject.plan, subject.plan.target
    size = plan.tile_memory[plan.fullest_tile]
    most = max(plan.memory, key=lambda category: plan.memory[category][plan.fullest_tile])
    parts = {kind: sum(p.runs * getattr(p, kind) for p in plan.phases) / plan.cycles for kind in ("compute", "exchange", "sync")}
    shares = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in parts.items())
    stages = 1 + max(p.stage for p in plan.populations)
    blocks = int((subject.places.owner >= 0).sum())
    relays = len({r.tile for b in plan.buses for r in b.relays})
    kind = "training step" if plan.training else "forward pass"
    sizes = " + ".join(f"{p.neurons:,}" for p in plan.populations[:6]) + (" + …" if len(plan.populations) > 6 else "")
    split = "".join(f"; {name} in {len(ids)} parts" for name, ids in plan.parts.items())
    limited = [b for b in plan.buses if b.kind == "events" and b.capacity < b.width]
    windows = ", ".join(f"{b.capacity:,} of {b.width:,}" for b in limited[:4]) + (" …" if len(limited) > 4 else "")
    held = "every event"
    if limited:
        held = f"{windows} events, {'further ones follow' if limited[0].mode == 'exact' else 'more are dropped'}"
    activity = ", ".join(f"{100 * value:.3g} %" for value in list(plan.activity.values())[:6])
    network = f"{plan.name} on {target.name}: {sizes} neurons, {many(len(plan.connections), 'connection')}"
    tiles = f"{many(blocks, 'tile')} of neurons and {many(relays, 'relay tile')} of {target.tiles:,}"
    share = f"{100 * size / target.tile_bytes:.0f} %"
    return [
        ("network", f"{network}, T = {plan.steps}, batch {plan.batch}{split}"),
        ("schedule", f"{many(plan.iterations, 'iteration')} of {many(stages, 'stage')}, {many(plan.interval, 'iteration')} a time step"),
        ("placement", f"{tiles} ({chips_used(subject)} of {many(target.chips, 'chip')})"),
        ("memory", f"{size:,} of {target.tile_bytes:,} bytes on the fullest tile ({share}), most of it {most}"),
        ("time", f"{1e3 * plan.seconds:.4g} ms a {kind} predicted, {plan.batch / plan.seconds:,.0f} samples/s ({shares})"),
        ("activity", f"{activity or 'no spikes'} ({plan.activity_source}); windows hold {held}"),
    ]


def chips_used(subject: Subject) -> int:
    """Return the number of chips with data."""
    used = subject.places.used
    return len(set((used // subject.plan.target.tiles_per_chip).tolist()))


def many(number: int, what: str) -> str:
    """Return a count with its noun: ``3 tiles``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
