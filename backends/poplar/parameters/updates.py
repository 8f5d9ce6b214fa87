"""Emitted code of the optimiser: the updates of parameters, and the rates (learning rate and other factors) of groups of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from snnc.backends.codegen.printing import c_assignments, c_literal
from snnc.backends.codegen.updates import group_numbers, groups_of, needed_rates, printed_rule
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body, Values, VertexLoop, class_name
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.losses.update_rules import moments, rule_of
from snnc.compiler.losses.weight_rounding import parameter_key
from snnc.compiler.neurons.library.batch_norm import MEAN, SHIFT, SLOPE, VARIANCE, is_batch_norm
from snnc.compiler.tiles.vertices.parameter_vertices import KEPT, schedule, update, update_half
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec

FACTOR: Final = "clip_factor[0]"
"""C++ expression of the factor that scales the gradients to the maximum norm."""
_MIN_RATES: Final = 2
"""Minimum number of the optimiser's rates of a group; those that its equations do not need stay 0."""


def clips(net: PoplarNetwork) -> bool:
    """Return whether the norm of all gradients is computed, to clip them or, with a loss scale, to find gradients that are not finite."""
    return net.mapped.norm_cycles > 0


def keeps_remainder(net: PoplarNetwork) -> bool:
    """Return whether the rounding errors of float16 weights are stored."""
    return net.program.rounding is not None and net.program.rounding.kind == "master"


def update_vertex(net: PoplarNetwork, *, half: bool = False, placed: bool = False) -> VertexSpec:
    """Return the vertex that updates float32 parameters or, with `half`, float16 weights (`placed`: with a table of their positions)."""
    number, rounding = len(moments(net.program.optimizer)), net.program.rounding
    if half and rounding is not None:
        return update_half(net.costs, number, accumulates=net.mapped.accumulates, clips=clips(net), rounding=rounding.kind, placed=placed)
    return update(net.costs, number, accumulates=net.mapped.accumulates, clips=clips(net))


def updates_halves(net: PoplarNetwork) -> bool:
    """Return whether float16 weights are updated."""
    return any(net.program.parameters[op.parameter].half for op in net.program.update) and not net.mapped.external


def half_update_vertices(net: PoplarNetwork) -> list[VertexSpec]:
    """Return the vertices that update float16 weights, one of each class in the program."""
    if not updates_halves(net):
        return []
    maps = {c.weight: net.indexed[c.id].map for c in net.program.connections if c.id in net.indexed}
    learned = [op.parameter for op in net.program.update if net.program.parameters[op.parameter].half]
    vertices = (update_vertex(net, half=True, placed=name in maps and maps[name].reordered) for name in learned)
    by_class = {vertex.name: vertex for vertex in vertices}
    return [by_class[name] for name in sorted(by_class)]


def random_values(net: PoplarNetwork, parameter: str) -> Values:
    """Return the fields for the random numbers with which updates of a weight are rounded stochastically; none for other roundings."""
    if net.program.rounding is None or net.program.rounding.kind != "stochastic":
        return {}
    number = [op.parameter for op in net.program.update].index(parameter)
    return {"updates": "optimizer_step[0]", "key": f"{parameter_key(net.program.rounding.seed, number)}u"}


def sum_before_updates(
    net: PoplarNetwork, assembly: Assembly, summed: Callable[[VertexLoop], VertexLoop], *, without: str | None = None
) -> None:
    """For each loop of update vertices, add ``summed(loop)``, vertices that sum gradients; the updates then read only the sums.

    The field `without` of the updates is removed.
    """
    updates = {class_name(vertex) for vertex in (update_vertex(net), *half_update_vertices(net))}
    loops, sums = assembly.loops.get("update", []), []
    for index, loop in enumerate(loops):
        if loop.codelet in updates:
            sums.append(summed(loop))
            # `parts` is the number of gradients per parameter. With one, `others` is not read, but must be connected to some tensor.
            values = {**loop.values, "others": loop.values["rates"], "parts": "1"}
            loops[index] = replace(loop, values={name: value for name, value in values.items() if name != without})
    assembly.loops["update"] = [*loops, *sums]


def connected_update(net: PoplarNetwork, *, half: bool = False, placed: bool = False) -> VertexSpec:
    """Return the update vertex; if gradients are accumulated and clipped, with the field for their sum, which the norm vertices read."""
    vertex = update_vertex(net, half=half, placed=placed)
    return replace(vertex, fields=(*vertex.fields, KEPT)) if net.mapped.accumulates and clips(net) else vertex


def optimizer_arrays(net: PoplarNetwork) -> list[str]:
    """Return the names of the arrays that an update stores per parameter: moments, and the sum of earlier gradients."""
    return [*moments(net.program.optimizer), *(["kept"] if net.mapped.accumulates else [])]


def rates_per_group(net: PoplarNetwork) -> int:
    """Return the number of rates of a group: the optimiser's, the factor that unscales gradients, and 1 / (number of batches)."""
    if net.program.optimizer is None:
        return _MIN_RATES
    return max(_MIN_RATES, len(rule_of(net.program.optimizer).rate_names)) + net.mapped.scaled + net.mapped.accumulates


def add_accumulation(net: PoplarNetwork, assembly: Assembly) -> Values:
    """If the program accumulates gradients, add the number of earlier batches as a setting; return the fields for it."""
    if not net.mapped.accumulates:
        return {}
    assembly.on_tile("INT", "batches", "earlier batches whose gradients are stored")
    assembly.on_tile("BOOL", "updating", "whether this step updates the parameters", shape="{}")
    assembly.tensors.append('tensor("batches", SNNC_SETTING, {1}, batches, {}, true, SNNC_INT32);')
    return {"batches": "batches[0]", "updating": "updating"}


def rate_count(net: PoplarNetwork) -> int:
    """Return the number of rates of all groups."""
    return rates_per_group(net) * max(1, len(groups_of(net.program)))


def rates_of(net: PoplarNetwork, parameter: str) -> str:
    """Return the C++ of the rates of a learned parameter."""
    size, number = rates_per_group(net), group_numbers(net.program)[parameter]
    return "rates" if len(groups_of(net.program)) == 1 else f"rates.slice({number * size}, {(number + 1) * size})"


def update_code(net: PoplarNetwork) -> Body:
    """Return the template data of the codelets that update parameters and compute rates."""
    gradient = "(gradient[i] * unscale)" if net.mapped.scaled else "gradient[i]"
    rule = printed_rule(net.program.optimizer or SGD(), gradient=gradient)
    body: Body = {
        "template": "optimizer",
        "rule": rule,
        "shared": _group_bodies(net),
        "vertex": update_vertex(net),
        "schedule": schedule(net.costs, accumulates=net.mapped.accumulates, scaled=net.mapped.scaled),
        "accumulates": net.mapped.accumulates,
        "clips": clips(net),
        "width": rates_per_group(net),
        "numbers": rate_count(net),
        "halves": half_update_vertices(net),
        "scaled": net.mapped.scaled,
    }
    if updates_halves(net):
        assert net.program.rounding is not None, "float16 weights that are updated have a rounding"
        body["rounding"] = net.program.rounding.kind
        body["half_rule"] = printed_rule(net.program.optimizer or SGD(), gradient=gradient, value="now")
    return body


def _group_bodies(net: PoplarNetwork) -> list[Body]:
    """Return the template data for the rates of each group: assignments, rates that stay 0, and positions of other factors.

    These factors are the last numbers of the group: the one that unscales gradients, if the loss is scaled, and 1 / (number of batches), if
    gradients are accumulated.
    """
    rule, size = rule_of(net.program.optimizer or SGD()), rates_per_group(net)
    corrections = {name: f"share_after(updates, {c_literal(1 - beta)})" for name, beta in rule.bias_corrections.items()}
    bodies: list[Body] = []
    for number, group in enumerate(groups_of(net.program)):
        places = {rate: f"rates[{number * size + k}]" for k, rate in enumerate(rule.rate_names)}
        lr = "*lr" if group.lr == 1 else f"(*lr * {c_literal(group.lr)})"
        names = {"lr": lr, **{name: c_literal(getattr(group, name)) for name in rule.settings}, **corrections, **places}
        last = (number + 1) * size - 1
        bodies.append(
            {
                "assignments": c_assignments(needed_rates(rule), names=names, stores=rule.rate_names),
                "unused": [number * size + k for k in range(len(rule.rate_names), size - net.mapped.accumulates - net.mapped.scaled)],
                "unscale": last - net.mapped.accumulates,
                "share": last,
            }
        )
    return bodies


def set_in_passes(net: PoplarNetwork) -> frozenset[str]:
    """Return the parameters that the host sets between the passes of an update: statistics of batch normalisations."""
    parameters = set()
    for population in net.program.populations:
        if net.mapped.extra_passes and is_batch_norm(population.model):
            names = dict(zip(population.kernel.parameters, net.step(population.id).parameters, strict=True))
            parameters |= {name for of, name in names.items() if population.kernel.labels[of] in (MEAN, VARIANCE, SHIFT, SLOPE)}
    return frozenset(parameters)
