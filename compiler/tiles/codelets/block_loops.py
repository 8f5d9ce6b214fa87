"""Loops of a block's vertices: over its neurons, over the inputs of its connections, and over returned gradients.

A block is the neurons and samples that one worker of a tile processes. A *sweep* reads a list once, for as many columns (or samples) as
registers can hold. The trip counts of loops depend on these amounts:

* block: ``samples``, and ``count`` (neurons);
* incoming connection: ``events`` (spikes of all samples), ``entries`` (spikes, and neurons in the support of the surrogate), ``width``
  (values per sample), and ``nonzero`` (weight rows that are read: the two rows of each pair of values that are not both 0);
* tables of an indexed connection: ``searches`` (halvings of binary searches), ``lookups`` (of sources), ``found_rows`` (rows that are
  used), ``singles`` (runs of one value), ``runs`` (longer runs), ``values`` (in all runs), ``sample_values`` (``values`` times samples);
* outgoing connection: ``outputs`` (neurons of the target), and ``unaligned`` (1 if one load cannot read a pair of samples);
* gradients returned in windows: ``windows``, ``searches`` (halvings of binary searches), and ``own`` (entries that belong to the block).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from snnc.compiler.tiles.indexed.tables import TableForm
from snnc.compiler.tiles.mapped.network import Link
from snnc.compiler.tiles.vertices.cost import EVENT_SWEEP, SAMPLE_SWEEP, VALUE_SWEEP, CodeletCost
from snnc.compiler.tiles.vertices.loops import Amount, Formula, FunctionCall, Loop, Place, joined, looping, pairs, sweeps

if TYPE_CHECKING:
    from snnc.compiler.tiles.codelets.block_vertices import BlockLink

SAMPLES: Final = Amount("samples")
COUNT: Final = Amount("count")


def forward_loops(cost: CodeletCost, links: Iterable[BlockLink]) -> tuple[Loop, ...]:
    """Return the loops of a block's forward or backward step; `links` are the connections whose windows the step reads."""
    return (
        *looping("samples", SAMPLES, cost.sample),
        *looping("equations of two neurons", SAMPLES * (COUNT // 2), cost.pair),
        *looping("equations of a neuron alone", SAMPLES * (COUNT % 2), cost.neuron),
        *(loop for link in links for loop in read_loops(cost, link)),
    )


def backward_loops(cost: CodeletCost, read: Iterable[BlockLink], back: Iterable[BlockLink], returning: int) -> tuple[Loop, ...]:
    """Return the loops of a backward step, or of the part of it that processes a further window.

    `read` are the connections whose weight gradients are summed, `back` those that need partial products for their sources. Gradients
    return to `returning` outputs of the population in windows.
    """
    return (
        *forward_loops(cost, read),
        *(loop for link in back for loop in _partial_products(cost, link.index)),
        *(loop for n in range(returning) for loop in _returning(cost, ("returned", n))),
    )


def read_loops(cost: CodeletCost, read: BlockLink) -> Iterator[Loop]:
    """Yield the loops over the events or values of a connection."""
    place: Place = ("incoming", read.index)
    if read.link.indexed is not None:
        yield from _tables(cost, read.link, read.form, place)
    elif read.link.dense:
        yield from _events(cost, place) if read.link.events else _values(cost, place, mostly_zero=read.link.sparse_values)
    elif read.link.events:
        yield from looping("spikes", Amount("events"), cost.id + converted(cost, read.link), place)
    else:
        yield from looping("values", SAMPLES * COUNT, cost.element + converted(cost, read.link), place)


def converted(cost: CodeletCost, link: Link) -> int:
    """Return the cycles that convert a float16 weight of a connection that is not dense; 0 for float32 weights."""
    return cost.narrow if link.half else 0


def _sweeps(cost: CodeletCost, most: int, place: Place) -> Iterator[Loop]:
    yield from looping("sweeps over a list", SAMPLES * sweeps(COUNT, most), cost.sweep, place)
    yield from looping("columns of a sweep", SAMPLES * COUNT, cost.swept_column, place)


def _events(cost: CodeletCost, place: Place) -> Iterator[Loop]:
    yield from _sweeps(cost, EVENT_SWEEP, place)
    each = _row(cost.event, cost.event_vector, EVENT_SWEEP) + joined(COUNT, EVENT_SWEEP) * cost.event_joined
    yield from looping("weights of a spike", Amount("events"), each, place)


def _row(sweep: int, pair: int, most: int) -> Formula:
    return sweeps(COUNT, most) * sweep + pairs(COUNT) * pair


def _values(cost: CodeletCost, place: Place, *, mostly_zero: bool) -> Iterator[Loop]:
    """Yield the loops over a connection's input values, which are all multiplied, or mostly skipped because they are 0."""
    yield from _sweeps(cost, VALUE_SWEEP, place)
    if mostly_zero:
        yield from looping("pairs of values", SAMPLES * pairs(Amount("width")), sweeps(COUNT, VALUE_SWEEP) * cost.word, place)
        yield from looping("weights of a value that is not 0", Amount("nonzero"), _row(cost.word_hit, cost.product, VALUE_SWEEP), place)
    else:
        yield from looping("weights of a value", SAMPLES * Amount("width"), _row(cost.row, cost.product, VALUE_SWEEP), place)


def _tables(cost: CodeletCost, link: Link, form: TableForm | None, place: Place) -> Iterator[Loop]:
    if link.events:
        yield from looping("halvings of a search for the first spike", Amount("searches"), cost.search, place)
    yield from looping("lookups in a table", Amount("lookups"), cost.lookup, place)
    yield from _runs(cost, form, place)
    yield from looping("values of runs", Amount("values"), cost.choice if link.chooses else cost.value + converted(cost, link), place)
    if link.chooses:
        yield from looping("chosen values", SAMPLES * COUNT, 2 * cost.element, place)


def _runs(cost: CodeletCost, form: TableForm | None, place: Place) -> Iterator[Loop]:
    """Yield the loops over rows of a table and over their runs; without a `form`, runs of one value and longer runs may both occur."""
    yield from looping("rows of a table", Amount("found_rows"), cost.table_row, place)
    if form is None or form.single:
        yield from looping("runs of one value", Amount("singles"), cost.single, place)
    if form is None or not form.single:
        yield from looping("runs", Amount("runs"), cost.run, place)


def _partial_products(cost: CodeletCost, index: int) -> Iterator[Loop]:
    place: Place = ("partials", index)
    yield from _sweeps(cost, VALUE_SWEEP, place)
    each = _row(cost.entry, cost.entry_vector, VALUE_SWEEP) + joined(COUNT, VALUE_SWEEP) * cost.event_joined
    yield from looping("partial products of an entry", Amount("entries"), each, place)


def _returning(cost: CodeletCost, place: Place) -> Iterator[Loop]:
    yield from looping("windows that return", Amount("windows"), cost.sample, place)
    yield from looping("halvings of a search for the block's neurons", Amount("searches"), cost.search, place)
    yield from looping("gradients of the block's neurons", Amount("own"), cost.id, place)


def source_loops(cost: CodeletCost, links: Iterable[tuple[Link, TableForm | None]]) -> tuple[Loop, ...]:
    """Return the loops of a block that sums gradients from the targets of `links`; each loop's place has the index in `links`."""
    loops = list(looping("samples", SAMPLES, cost.sample))
    for index, (link, form) in enumerate(links):
        place: Place = ("outgoing", index)
        if link.indexed is not None:
            loops += _runs(cost, form, place)
            if not link.chooses:
                loops += looping("values of runs", Amount("values"), cost.value + converted(cost, link), place)
            per_sample = cost.sample_choice if link.chooses else cost.sample_value
            loops += looping("values of runs, of a sample", Amount("sample_values"), per_sample, place)
        elif link.dense:
            loops += _many_samples(cost, place)
            loops += _one_sample(cost, ("alone", index))
        else:
            loops += looping("deltas", SAMPLES * COUNT, cost.element + converted(cost, link), place)
    return tuple(loops)


def _many_samples(cost: CodeletCost, place: Place) -> Iterator[Loop]:
    """Yield the loops for tiles with several samples, which process two samples at a time."""
    rows = sweeps(SAMPLES, SAMPLE_SWEEP) * cost.row + pairs(SAMPLES) * cost.product
    yield from looping("sweeps over deltas", COUNT * sweeps(SAMPLES, SAMPLE_SWEEP), cost.sweep, place)
    yield from looping("sums of a sweep", COUNT * SAMPLES, cost.swept_column, place)
    each = rows + Amount("unaligned") * (SAMPLES // 2) * cost.unaligned
    yield from looping("deltas of a weight", COUNT * Amount("outputs"), each, place)


def _one_sample(cost: CodeletCost, place: Place) -> Iterator[Loop]:
    """Yield the loops for tiles with one sample, which process two outputs and up to four columns at a time."""
    runs = FunctionCall("dot_sweeps", COUNT)
    yield from looping("sweeps over deltas", runs, cost.sweep, place)
    yield from looping("sums of a sweep", COUNT, cost.swept_column, place)
    each = runs * cost.dot + COUNT * cost.product + (Amount("outputs") % 2) * COUNT * cost.unaligned
    yield from looping("weights of two deltas", pairs(Amount("outputs")), each, place)
