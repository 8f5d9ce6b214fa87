"""Local search moves the parts of a population together, and then individually."""

from itertools import islice

from snnc.benchmarks.everyday import clustered_sparse
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.placement.choices import choices
from snnc.compiler.tiles.placement.placement import placements
from snnc.compiler.tiles.placement.refine import changes, placed, shapes_of
from snnc.compiler.tiles.planning.placing import parter_of
from snnc.driver.lowering import lower_graph
from snnc.options.compile_options import options


def test_parts_of_a_population_are_moved_together_before_each_alone():
    chosen = options("gc200", steps=4, batch=4, loss="ce_mean_membrane", optimizer="adam", surrogate="fast_sigmoid:25")
    given = lower_graph(clustered_sparse(2, 101, 6).graph(), chosen)
    parter = parter_of(given.ready, given.program, chosen.for_backend().for_plan())
    program, tried = parter.apply(parter.partition(2)).correspondence.program_of_parts, []

    def placer(problem):
        some = choices(problem)
        found = next(placements(problem, some, 1))
        shapes = shapes_of(problem, found)
        for changed in changes(problem, shapes, some):
            tried.append({i for i, (a, b) in enumerate(zip(shapes, changed, strict=True)) if a != b})
            where = placed(problem, changed, 1, 1)
            assert where is None or all(r.neurons.sum() == n.neurons for r, n in zip(where.ranges, problem.network.layers, strict=True))
        return [found]

    make_plan(program, load_target("gc200"), steps=4, batch=4, placer=placer)
    parts = {i for i, population in enumerate(program.populations) if "part" in population.label}
    assert len(parts) == 2
    assert all(moved <= parts for moved in islice(tried, 3))
    assert parts in tried[:3]
    assert any({part} in tried for part in parts)
    assert all(tried.index({part}) > tried.index(parts) for part in parts if {part} in tried)
