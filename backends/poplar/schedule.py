"""Emitted code that runs the compute sets in order: Poplar programs, and the iteration counters (clocks) that vertices read."""

from __future__ import annotations

from typing import Literal, TypeAlias

from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parameters.norms import norm_sets
from snnc.backends.poplar.parameters.parameters import PACKED_ROWS, WEIGHT_ROWS
from snnc.backends.poplar.parts import Assembly, Body, clock
from snnc.backends.poplar.streaming import NEXT_ROW, ROW, ROW_BEFORE, move_row
from snnc.backends.poplar.vertices.external import SUM
from snnc.backends.poplar.vertices.gradient_windows import REDUCE
from snnc.backends.poplar.vertices.indexed import SHARED_SUMS
from snnc.backends.poplar.vertices.losses import RATES, loss_sets
from snnc.backends.poplar.vertices.recompute import RESTORE, SAVE
from snnc.backends.poplar.vertices.relay_segments import counters
from snnc.backends.poplar.vertices.relays import JOIN, uses_join
from snnc.backends.poplar.vertices.statistics import MOMENTS
from snnc.backends.poplar.vertices.window_tests import window_test_sets

Kind: TypeAlias = Literal["training", "passes", "external", "operation"]
"""What updates the parameters: ``training``: the training step; ``passes``: a program of its own, after several passes; ``external``: the
caller, which also sends the adjoint of the output; ``operation``: PyTorch, in which the program is an operation of PopART."""


def add_clocks(net: PoplarNetwork, assembly: Assembly) -> None:
    """Add two counters per IPU that compute sets use in turn, so that none reads and writes the same counter."""
    for name in ("first_clock", "second_clock"):
        assembly.variable("OnIpus", name, f'layout.on_ipus("{name}", IPUS)', "iteration k")
    forward = (JOIN if net.fused else "relay_forward", "forward_neurons", 1)
    sets = [forward] + ([("relay_backward", "backward_neurons", -1)] if net.training else [])
    for first, second, step in sets:
        for compute_set, source, target, add in ((first, "first_clock", "second_clock", 0), (second, "second_clock", "first_clock", step)):
            assembly.loop("clocks", clock(compute_set, source, target, add))


def program_values(net: PoplarNetwork, assembly: Assembly, kind: Kind) -> Body:
    """Return the template data of the Poplar programs."""
    counted = counters(net)
    fused = {
        "number": net.plan.interval * (net.plan.steps - 1) + max(net.forward_stages[p.id] for p in net.plan.populations) + 1,
        "iterations": [f"{buffer}_iteration.all" for buffer in net.stores],
        "zeros": [f"zero.at({buffer}_relays)" for buffer in net.stores],
    }
    return {
        "kind": kind,
        "further": net.further,
        "forgotten": {part: names for part, names in assembly.forgotten.items() if names},
        "weight_rows": [*([PACKED_ROWS] if net.packed_rows else []), *([WEIGHT_ROWS] if net.copied_rows else [])],
        "relays": [*([] if net.fused else ["relay_forward"]), *([JOIN] if uses_join(net) else [])],
        "tests": {"forward": list(window_test_sets(net, "forward")), "backward": list(window_test_sets(net, "backward"))},
        "fused": fused if net.fused else None,
        "loads": net.plan.streamed != "off",
        "save": SAVE,
        "restore": RESTORE,
        "row": ROW,
        "next_row": move_row(NEXT_ROW),
        "row_before": move_row(ROW_BEFORE),
        "counted": [f"{name}{access}" for name, access in counted],
        "counted_first": [f"{name}_first{access}" for name, access in counted],
        "shared_sums": SHARED_SUMS if net.owners_sum_gradients else "",
        "reduce": [REDUCE] if net.gradient_buses else [],
        "losses": loss_sets(net) if kind in ("training", "passes") else (),
        # To save memory during the forward pass, targets are sent after it, except single labels of samples.
        "late_targets": kind in ("training", "passes") and net.mapped.loss.columns > 0,
        "sums": _sums(net, kind) if net.training else [],
        "changes": [f"Execute({name})" for name in (RATES, *norm_sets(net), "update_parameters")] if kind == "passes" else [],
        "measures": [f"Execute({MOMENTS})"] if net.mapped.computes_statistics else [],
        "accumulates": net.mapped.accumulates,
    }


def _sums(net: PoplarNetwork, kind: Kind) -> list[str]:
    """Return, as C++, the Poplar programs that sum the private gradients and, in a training step, update the parameters."""
    replicated = any(p.replicas > 1 for p in net.plan.populations)
    sums = ["Execute(sum_private_gradients)"] if replicated or net.owners_sum_gradients else []
    sums += [SHARED_SUMS] if net.owners_sum_gradients else []
    if kind != "training":
        return [*sums, f"Execute({SUM})"]
    return [*sums, *(f"Execute({name})" for name in norm_sets(net)), "Execute(update_parameters)"]
