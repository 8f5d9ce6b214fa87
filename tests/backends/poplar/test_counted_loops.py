"""Loop counts of vertices, from running codelets, compared with their formulas for the known contents of a run.

Each statement that counts a loop also reports its cycles, by class and name of the loop; the loops over columns report their
actual trips. Spikes come from the reference, everything else from the plan.
"""

import ctypes
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from poplar_projects import BATCH, STEPS, Project, machine, spiking_recurrent, workplace
from windowed_nets import deep

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.vertices.links import incoming
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles.codelets.block_code import backward_code, forward_code
from snnc.compiler.tiles.codelets.block_vertices import backward, forward, source_gradient
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.vertices.loss_vertices import loss_scores, loss_sum, sample_loss
from snnc.compiler.tiles.vertices.parameter_vertices import update, weight_rows
from snnc.compiler.tiles.vertices.relay_vertices import relay_compact

REPORT = """
#include <cstdio>
#include <cstdlib>
namespace {
[[maybe_unused]] void report(const char *what, const char *name, unsigned long number) {
  static FILE *const file = std::fopen("%s", "a");
  std::fprintf(file, "%%s\\t%%s\\t%%lu\\n", what, name, number);
}
} // namespace
"""
EVENT_LOOP = "    for (unsigned e = 0; e < events; ++e) {\n      const unsigned id = ids[e];\n"


def reporting(text, path):
    """The codelets with a report at each statement that counts, and in the loops over spikes."""
    lines, name = [], ""
    for line in text.splitlines():
        if found := re.match(r"class (\w+?)\d* ", line):
            name = found[1]
        if found := re.match(r"\s*cycles \+= (.*);  // (.*)$", line):
            lines.append(f'report("{name}", "{found[2]}", {found[1]});')
        lines.append(line)
    text = "\n".join(lines).replace("#include <poplar/Vertex.hpp>\n", "#include <poplar/Vertex.hpp>\n" + REPORT % path, 1)
    for struct in ("AddRows", "AddToRows"):
        head, tail = text.split(f"struct {struct} {{", 1)
        assert EVENT_LOOP in tail
        places = 'P == 0 || LAST == 0 ? "one place" : "two places"'
        trip = f'      report("{struct}", {places}, P + LAST);\n      report("{struct}", "trips", 1);\n'
        text = head + f"struct {struct} {{" + tail.replace(EVENT_LOOP, EVENT_LOOP + trip, 1)
    return text


def emitted(program, plan, name):
    """The project of a plan whose codelets report, and where to."""
    folder = emit_poplar(program, plan, workplace().path / name)
    path = folder / "report.txt"
    (folder / "codelets.cpp").write_text(reporting((folder / "codelets.cpp").read_text(), path))
    return Project(program, plan, folder), path


def lines_of_a_step(case, path):
    """What codelets reported in one training step; a first one brings the parameters to where vertices read them."""
    engine, (inputs, target) = case.open(), case.data()
    engine.train_batch(inputs, target, 0.0)
    ctypes.CDLL(None).fflush(None)
    path.write_text("")
    engine.train_batch(inputs, target, 0.0)
    ctypes.CDLL(None).fflush(None)
    return [line.split("\t") for line in path.read_text().splitlines()]


def total_of(lines):
    """Numbers by class and loop."""
    found = Counter()
    for what, loop, number in lines:
        found[what, loop] += int(number)
    return found


class Counted:
    """A network, what its codelets reported in a training step, and what the reference says that its neurons did."""

    def __init__(self, graph, optimizer, tiles, name):
        self.program = lower(graph, loss=parse_loss("ce_count"), loss_output="y", optimizer=optimizer, steps=STEPS)
        self.plan = make_plan(self.program, machine(tiles), steps=STEPS, batch=BATCH, effort=0, fused=False, gradients="dense")
        case, path = emitted(self.program, self.plan, name)
        self.net, self.lines = PoplarNetwork(self.program, self.plan), lines_of_a_step(case, path)
        self.found, (inputs, _) = total_of(self.lines), case.data()
        records = case.reference().forward(inputs, {})
        shown = {o.source.buffer: records[o.id] for o in self.program.outputs if o.source.delay == 0}
        self.spikes = {"x0_in": inputs["x0"].reshape(STEPS, BATCH, -1), **{b: r.reshape(STEPS, BATCH, -1) for b, r in shown.items()}}

    def sent(self, source, t, block):
        """Spikes of a source at step t in the samples of a block."""
        return 0 if t < 0 else int(np.count_nonzero(self.spikes[source][t, block.sample : block.sample + block.samples]))

    def own(self, link, t, block):
        """Spikes that a vertex reads: of a one-to-one connection too, it walks through all ids."""
        return self.sent(link.source.buffer, t - link.delay, block)

    def walked(self, name):
        """Cycles of each loop of the blocks' vertices of a kind, by step, block and connection."""
        found = Counter()
        for placed in self.plan.populations:
            layer, links = self.net.layers[placed.id], incoming(self.net, placed.id)
            cost = self.net.costs[f"{name}.{placed.id}"]
            if name == "forward":
                vertex = forward(cost, layer, links, forward_code(layer, [], saved=True), supports=0, saved=True)
            else:
                vertex = backward(cost, layer, links, backward_code(layer), [])
            for block in placed.blocks:
                amounts = {"samples": block.samples, "count": block.count}
                for t in range(STEPS):
                    for loop in vertex.loops:
                        here = {} if loop.place is None else {"events": self.own(layer.incoming[loop.place[1]], t, block)}
                        found[loop.name] += loop.total.value(amounts | here)
        return found


@cache
def recurrent(tiles):
    return Counted(spiking_recurrent(np.random.default_rng(3)), Adam(1e-2), tiles, f"counted{tiles}")


@pytest.mark.wide
@pytest.mark.parametrize("tiles", [1, 16])
@pytest.mark.parametrize("name", ["forward", "backward"])
def test_blocks_count_the_cycles_of_the_spikes_that_they_read(tiles, name):
    case = recurrent(tiles)
    wanted = case.walked(name)
    assert wanted["weights of a spike"] > 0
    assert wanted["spikes"] > 0
    assert {loop: case.found[name.capitalize(), loop] for loop in wanted} == wanted


@pytest.mark.representative("*-16")
@pytest.mark.parametrize("tiles", [1, 16])
@pytest.mark.parametrize(("struct", "name"), [("AddRows", "forward"), ("AddToRows", "backward")])
def test_the_formula_of_a_loop_over_spikes_is_that_of_the_trips_that_it_makes(tiles, struct, name):
    case = recurrent(tiles)
    costs = {case.net.costs[f"{name}.{p.id}"] for p in case.plan.populations}
    (cost,) = {(c.event, c.event_vector, c.event_joined) for c in costs}
    trips, pairs = case.found[struct, "trips"], case.found[struct, "one place"] + case.found[struct, "two places"]
    joined = sum(line[:2] == [struct, "two places"] for line in case.lines)
    assert cost[0] * trips + cost[1] * pairs + cost[2] * joined == case.found[name.capitalize(), "weights of a spike"]


@pytest.mark.wide
@pytest.mark.parametrize("tiles", [1, 16])
def test_blocks_that_form_gradients_of_sources_count_every_weight_and_delta(tiles):
    case, wanted = recurrent(tiles), Counter()
    for placed in case.plan.populations:
        layer = case.net.layers[placed.id]
        links = [link for link in layer.outgoing if link.input_gradient]
        if not links:
            continue
        vertex = source_gradient(case.net.costs[f"source_gradient.{placed.id}"], layer, [(link, None) for link in links])
        per_tile = Counter()
        for block in placed.blocks:
            per_tile[block.tile, block.first] += block.samples
        for block in placed.blocks:
            samples = per_tile[block.tile, block.first]
            first = min(b.sample for b in placed.blocks if (b.tile, b.first) == (block.tile, block.first))
            unaligned = samples % 2 or (block.sample - first) % 2
            for loop in vertex.loops:
                if loop.place is None:  # reported by idle runs too, which leave it out of their sum
                    continue
                way, n = loop.place
                if (way == "alone") != (links[n].dense and samples == 1):
                    continue
                amounts = {"samples": block.samples, "count": block.count, "outputs": links[n].outputs, "unaligned": unaligned}
                wanted[loop.name] += (STEPS - links[n].delay) * loop.total.value(amounts)
    assert wanted["deltas of a weight"] + wanted["weights of two deltas"] > 0
    assert {loop: case.found["SourceGradient", loop] for loop in wanted} == wanted


@pytest.mark.representative("16")
@pytest.mark.parametrize("tiles", [1, 16])
def test_relays_losses_and_updates_count_what_a_step_gives_them(tiles):
    case = recurrent(tiles)
    net, costs, loss = case.net, case.net.costs, case.net.mapped.loss
    workers, classes = case.plan.target.workers, net.layers["p1"].neurons
    learned = sum(net.size(op.parameter) for op in case.program.update)
    copied = sum(net.size(c.weight) for c in net.copied_rows)
    replicas = {p.id: p.replicas for p in case.plan.populations}
    found = {
        ("RelayCompact", "ids found"): relay_compact(costs, writes_iteration=True).trip("ids found")
        * np.count_nonzero(case.spikes["p0_o0"]),
        ("LossScores", "classes"): loss_scores(costs, loss).trip("classes") * classes * BATCH,
        ("LossScores", "steps of a class"): loss_scores(costs, loss).trip("steps of a class") * classes * STEPS * BATCH,
        ("Loss", "classes"): sample_loss(costs, loss).trip("classes") * classes * workers * BATCH,
        ("Loss", "classes of a step"): sample_loss(costs, loss).trip("classes of a step") * classes * STEPS * BATCH,
        ("LossSum", "losses"): loss_sum(costs).trip("losses") * BATCH,
        ("Update", "parameters"): update(costs, 2).trip("parameters") * learned,
        ("WeightRows", "weights"): weight_rows(costs).trip("weights") * copied * replicas["p0"],
    }
    assert {key: case.found[key] for key in found} == found


@pytest.mark.wide
def test_further_windows_count_each_entry_of_their_partial_products():
    """The same entries as one window that holds them all: further windows cost what their entries cost."""
    entries = {}
    for capacity in (None, 4):
        graph = deep(np.random.default_rng(3), (20, 33), inputs=12)
        program = lower(
            graph, loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=SGD(1e-3), gradient_window=(-0.3, np.inf), steps=STEPS
        )
        given = {} if capacity is None else {"capacity": capacity, "gradient_capacity": capacity}
        plan = make_plan(program, machine(4), steps=STEPS, batch=BATCH, gradients="windowed", effort=0, fused=False, **given)
        found, costs = total_of(lines_of_a_step(*emitted(program, plan, f"partials{capacity}"))), PoplarNetwork(program, plan).costs
        name = "partial products of an entry"
        entries[capacity] = found["Backward", name] + found["WeightRound", name]
        assert (found["WeightRound", name] > 0) == (capacity is not None)
        assert all(costs[f"weight_round.{p.id}"].entry == costs[f"backward.{p.id}"].entry for p in plan.populations[1:])
    assert entries[4] == entries[None]
