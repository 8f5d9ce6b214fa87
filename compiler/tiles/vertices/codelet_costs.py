"""Costs of the codelets of a network: the number of instructions in each of their C++ loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.tiles.mapped.network import Layer, Link, MappedNetwork, Past, describe
from snnc.compiler.tiles.mapped.operations import pair_cycles
from snnc.compiler.tiles.vertices.cost import EVENT_SWEEP, SAMPLE_SWEEP, SUMMANDS, VALUE_SWEEP, CodeletCost, column_pairs


def codelet_costs(program: StepProgram) -> dict[str, CodeletCost]:
    """Return the coefficients of every codelet of `program`.

    Keys are codelet names; names that depend on a population end with its id (``"forward.p0"``). Populations of the same structure
    have equal coefficients, so one codelet serves them.
    """
    return network_costs(describe(program))


def network_costs(network: MappedNetwork) -> dict[str, CodeletCost]:
    """Return the coefficients of :func:`codelet_costs` for a described network."""
    costs = dict(_shared(network))
    for layer in network.layers:
        read = {link.events for link in layer.incoming if link.dense}  # True: loops over events; False: over rows of values
        learned = {link.events for link in layer.incoming if link.dense and link.weight_gradient}
        half, narrow = int(layer.half_dense_weights), int(layer.half_other_weights)
        columns = 2, 2 + half, 3 + half
        costs[f"forward.{layer.id}"] = _forward(layer, network.training).calling(*_over_columns(read, *columns))
        gather = _events_only(layer, per_column=2, event_vector=2 + half, narrow=narrow)
        costs[f"gather.{layer.id}"] = gather.calling(*_over_columns(read & {True}, *columns))
        if network.training:
            costs[f"backward.{layer.id}"] = _backward(layer).calling(*_over_columns(learned, per_column=1, pair=3, product=4))
            back = _source_gradient(layer)
            dense = any(link.dense and link.input_gradient for link in layer.outgoing)
            costs[f"source_gradient.{layer.id}"] = back.calling(*_over_samples(back)) if dense else back
            returns = any(link.dense and link.events and link.input_gradient for link in layer.incoming)
            further = _events_only(layer, per_column=1, event_vector=3, **(_partials(layer) if returns else {}))
            costs[f"weight_round.{layer.id}"] = further.calling(*_over_columns(learned & {True}, 1, 3, 4))
    return costs


# ---- shared loops ----------------------------------------------------------------------------------------------------
#
# A sweep traverses a list once and keeps the sums or deltas of several pairs of columns in registers (see `cost`). A loop is compiled for
# each possible number of columns (or samples) of a sweep, and once more for full sweeps. The functions below return its name and its
# size in tile memory: the number of instructions of all these variants together.


def _variants(most: int) -> tuple[int, ...]:
    """Return the number of columns of each variant of a loop whose sweeps have up to `most` pairs of columns."""
    return (*range(1, 2 * most + 1), 2 * most)


def _over_columns(events: Iterable[bool], per_column: int, pair: int, product: int) -> Iterator[tuple[str, int]]:
    """Yield the names and sizes of the loops of a block over events or rows of values, with `per_column` loads and stores for a column."""
    direction = "forward" if per_column > 1 else "backward"
    for of_events in events:
        most, one, each = (EVENT_SWEEP, _EVENT, pair) if of_events else (VALUE_SWEEP, _ROW, product)
        yield f"{'events' if of_events else 'values'}_{direction}", sum(_variant(n, one, each, per_column) for n in _variants(most))


def _variant(columns: int, one: int, pair: int, per_column: int) -> int:
    joined = _JOINED if columns % 2 and columns > 1 else 0
    return _SWEEP + one + pair * int(column_pairs(columns)) + joined + per_column * columns


def _over_samples(cost: CodeletCost) -> tuple[tuple[str, int], tuple[str, int]]:
    """Return the loops over outputs, once for several samples and once for columns of one sample, both with unaligned deltas as well."""
    samples = dots = 0
    for unaligned in (0, cost.unaligned):
        samples += sum(
            cost.sweep + cost.row + cost.product * int(column_pairs(n)) + cost.swept_column * n + unaligned * (n // 2)
            for n in _variants(SAMPLE_SWEEP)
        )
        dots += sum(cost.sweep + cost.dot + (cost.product + cost.swept_column + unaligned) * n for n in (4, 2, 1))
    return ("dots", dots), ("samples", samples)


def partial_products(cost: CodeletCost) -> tuple[str, int]:
    """Return the loop that computes, for each id in a window, the part of its gradient that is sent back to the source."""
    most = 2 * VALUE_SWEEP
    each = sum(cost.entry + cost.entry_vector * int(column_pairs(n)) + _JOINED + cost.swept_column * n for n in range(1, most + 1))
    return "partial_products", each


# ---- populations -----------------------------------------------------------------------------------------------------
#
# Instructions that each coefficient counts:
# A connection: its fields 8; a dense one also the call, the position of the last column, and the jump to the loop for its columns: 16 more.
# A sweep over the list of a sample: load its length, test for none, advance list and columns, loop counter, branch: 6.
# For each column of the sweep, forward: load and store the sum, 2; backward: load the delta, 1.
# An event: load the id, multiply by the row's length, add the base, branch: 4. A pair of its columns, forward: load the row, add: 2;
# backward: load the row, add, store: 3. A last column without a pair: shift the id, add its base: 2 more.
# A row of products: load the value, copy it for a pair, advance row and last column, branch: 5.
# A pair of its columns, forward: load, multiply, add: 3; backward: multiply, load, add, store: 4. A float16 weight is converted: 1 more.
# If values are mostly 0: for each pair of values, load both, or, branch, loop counter: 5; each row of a pair that is not 0: copy the value
# for a pair of columns, compute the address (multiply, add): 3, and its products.

# Indexed connections:
# A halving in a search of ids: load the id, compare, choose the half, subtract, branch: 5. A lookup: load the id,
# subtract the first row, compare with the number of rows, branch: 4; if the table lists the sources that have a row (its keys), for each
# event and each key: load, compare, branch, advance. A row that is processed: load where its runs begin and end, compare, branch: 4.
# A run of one value: load its position and the position of its weight, no loop, branch: 4; a longer run also loads its length, computes two
# addresses and sets up a loop: 8. A value: load the weight, load the sum, (multiply-)add, store: 4, one float at a time, because runs are
# not aligned.
# A weight as float16: 1 to convert it.
# Stored values as float16, for one neuron or two: subtract the offset, convert, store a word; load a word, convert, add the offset: 3.
# A float16 state, of one neuron or two: load a word and convert, or convert and store a word: 2.
# In max pooling, a value that is compared with the maximum so far (`choice`): load the present choice, compare twice, load, add and store
# the sum, store the number: 8.
# An id in a window whose partial gradient is sent back to the source (`entry`): load the id, multiply by the row's length, add the base,
# start the sum, add its halves, store, advance, branch: 8. A pair of its columns (`entry_vector`): load the row, multiply, add: 3.

_LINK, _DENSE, _SWEEP, _EVENT, _JOINED, _ROW, _PAIR, _NONZERO, _HALF = 8, 16, 6, 4, 2, 5, 5, 3, 3
_HALF_STATE: Final = 2
_RUNS: Final[dict[str, Any]] = {"search": 5, "lookup": 4, "table_row": 4, "single": 4, "run": 8, "value": 4, "choice": 8}
# An id in a one-to-one connection: load, subtract the block's first neuron, compare with its count, branch, advance.
_READING: Final = CodeletCost(idle=8, sweep=_SWEEP, event=_EVENT, event_joined=_JOINED, id=5, **_RUNS)
"""Costs of reading windows, which are the same in all vertices of blocks."""
# Two values of an element-wise connection: load, load the currents, add or multiply-add, store, advance, branch: 6, so an element takes 3.
_STEP: Final = replace(_READING, row=_ROW, word=_PAIR, word_hit=_NONZERO, element=3)
"""Costs that forward and backward vertices have in common."""


def _partials(layer: Layer) -> dict[str, Any]:
    return {"entry": 8, "entry_vector": 3 + layer.half_dense_weights}


def _forward(layer: Layer, training: bool) -> CodeletCost:
    kernel = layer.kernel
    floats = len(kernel.states) - len(kernel.halves)
    loads = len(kernel.inputs) + floats + layer.neuron_parameters
    past = layer.past if training else Past(0, 0, 0, 0)
    stores = floats + (len(kernel.saved) if training else 0) - past.half_others + layer.records
    # The history of a float16 state consists of the stored states.
    history = past.half_states if not kernel.halves else 0
    halves = _HALF * (history + past.half_others) + 2 * _HALF_STATE * len(kernel.halves)
    fill = 2 * len(kernel.inputs)
    return replace(
        _STEP,
        start=24 + _links(layer.incoming),
        sample=6 + _sample(layer.incoming),
        swept_column=2,
        event_vector=2 + layer.half_dense_weights,
        product=3 + layer.half_dense_weights,
        neuron=pair_cycles(kernel.forward) + loads + stores + halves + fill + 2 + _sending(layer),
        pair=pair_cycles(kernel.forward) + 2 * (loads + stores + fill + _sending(layer)) + halves + 2,
        window_test=6,  # two comparisons, and, not; shift and or into the mask
        narrow=int(layer.half_other_weights),
    )


def _backward(layer: Layer) -> CodeletCost:
    kernel = layer.kernel
    past = layer.past
    loads = 2 * (len(kernel.history) - past.half_states) + len(kernel.saved) - past.half_others
    loads += len(kernel.states) + layer.neuron_parameters
    halves = _HALF * (2 * past.half_states + past.half_others)
    loads += sum(1 + (s.buffer in layer.adjoint_outputs) for s in layer.sent) or len(layer.adjoint_outputs)
    stores = len(kernel.states) + len(kernel.inputs) + layer.stores_adjoint
    # A delta as float16: convert; load the word, join, store.
    stores += 4 * len({link.port for link in layer.incoming if link.half_deltas})
    sums = 3 * (layer.learnable_neuron_parameters + layer.learnable_scalars)
    learned = [link for link in layer.incoming if link.weight_gradient]
    return replace(
        _STEP,
        start=28 + _links(learned),
        sample=4 + _sample(learned),
        swept_column=1,
        event_vector=3,
        product=4,
        neuron=pair_cycles(kernel.backward) + loads + halves + stores + sums + 2,
        pair=pair_cycles(kernel.backward) + 2 * (loads + stores + sums) + halves + 2,
        **_partials(layer),
    )


def _links(links: Iterable[Link]) -> int:
    return sum(_LINK + (_DENSE if link.dense else 0) for link in links)


def _sample(links: Iterable[Link]) -> int:
    """Return the number of instructions per sample for connections that are not dense: counts, pointers and set-up of loops."""
    return sum(6 if link.events else 4 for link in links if not link.dense)


def _sending(layer: Layer) -> int:
    """Return the number of instructions that set a bit of the mask (shift, or, and a store every 32 neurons), or store a value."""
    return sum(3 if source.kind == "spikes" else 1 for source in layer.sent)


def _events_only(layer: Layer, per_column: int, event_vector: int, **more: Any) -> CodeletCost:
    """Return the costs of a vertex that reads further windows, which all connections with events are assumed to have."""
    links = [link for link in layer.incoming if link.events]
    start, sample = 16 + _links(links), _sample(links)
    return replace(_READING, start=start, sample=sample, swept_column=per_column, event_vector=event_vector, **more)


def _source_gradient(layer: Layer) -> CodeletCost:
    links = sum(link.input_gradient for link in layer.outgoing)
    half = any(link.half and link.dense for link in layer.outgoing)
    return CodeletCost(
        start=16 + _LINK * links,
        idle=8,
        sample=4,
        sweep=12,  # call, tests for the samples that are left, pointers, loop counter
        swept_column=3,  # load, add and store the gradient
        row=4 + half,  # load the weight, perhaps convert it, copy it for a pair, advance to the next output's row, branch
        product=3 + any(link.half_deltas for link in layer.outgoing),  # load, perhaps convert, multiply, add; the sum stays in registers
        dot=2 + 4 * half,  # load two deltas, branch
        unaligned=1,  # two loads
        element=4,
        table_row=24,  # bounds of the row, zeroes, and load, add and store for eight samples, two at a time
        single=4,
        run=8,
        value=2,  # load the weight, form the address of the deltas; then for every two samples load and multiply-add
        sample_value=1,
        narrow=int(any(link.half and not link.dense for link in layer.outgoing)),
        sample_choice=7,  # load the number of the chosen entry, compare, branch, load the delta and the sum, add, store
    )


# ---- codelets that all populations share -----------------------------------------------------------------------------


def _norm(network: MappedNetwork, sums: tuple[str, int]) -> dict[str, CodeletCost]:
    if not network.norm_cycles:
        return {}
    # the factor: three fields, a root, a sum, a division, a comparison, store; a sum of squares: load, add, branch
    return {
        "squares": CodeletCost(start=24, row=2, product=2, element=network.norm_cycles).calling(sums),
        "clip": CodeletCost(start=40, element=3),
        **({"judge_update": CodeletCost(start=40)} if network.scaled else {}),  # six fields, a comparison, products, stores
    }


def _half_updates(network: MappedNetwork, sums: tuple[str, int]) -> dict[str, CodeletCost]:
    """Return the costs of updates of float16 weights, and of copies of these weights for sources.

    A weight: convert, two bounds, convert back, join two into a word: 5. Stochastic rounding adds the weight's position (advance, compare,
    branch, add): 5, mixing of bits: 9, compare, shift, add, and: 6. A stored remainder adds: load, add; convert back, subtract, store: 5.
    A copy: the number of a worker's tiles, two divisions: 44; a group of a tile: 6; a column: 10; a weight: load 16 bits;
    store 16 bits: load the word, join, store.
    """
    if not network.half_weights:
        return {}
    rows = {"weight_rows_half": CodeletCost(start=24, run=44, lookup=6, row=10, element=4)}
    if network.rounding is None:
        return rows
    rounding = 5 + {"nearest": 0, "stochastic": 20, "master": 5}[network.rounding]
    return rows | {"update_half": CodeletCost(start=32, row=2, product=2, element=network.update + rounding).calling(sums)}


def _loss(network: MappedNetwork) -> dict[str, CodeletCost]:
    """Return the costs of the vertices that compute scores and adjoints; a loss that is computed in every step needs no scores."""
    if network.loss.name == "ce_rate":
        # a step: set-up of three loops, logarithm, sum; a class: load, compare; load, subtract, exp (3), add, store; divide, scale, store
        return {"loss": CodeletCost(start=30, row=24, element=28), "loss_scores": CodeletCost()}
    if network.loss.name == "composed":
        # Counted as a softmax and a squared error of every step and output, which exceeds most terms. A target: load, compare, add, branch.
        value = 4 if network.loss.masked else 0
        return {
            "loss": CodeletCost(start=60, sample=48, row=24, element=32, value=value),
            "loss_scores": CodeletCost(start=24, sample=20, element=6) if network.loss.scores else CodeletCost(),
        }
    softmax = 0 if network.loss.name == "mse_count" else 24  # per class: compare; subtract, exp (3), add; exp, divide (10), subtract
    most = network.loss.chooses_step
    return {
        # a class: its position, set-up of the loop, store; a step: load, add (compare and store the index), branch
        "loss_scores": CodeletCost(start=20, sample=14, element=6 if most else 3),
        "loss": CodeletCost(start=30, sample=softmax + 10, element=4 if most else 2),
    }


def _shared(network: MappedNetwork) -> dict[str, CodeletCost]:
    copy_ids = 3  # load, store and branch for a word of two 16-bit ids
    next_ids = 7  # load an id; store 16 bits: load the word, mask, shift, or, store; branch
    copy_floats = 2  # load, store and branch for two floats, rounded up
    sums = ("sums", sum(2 + 2 * n for n in range(1, SUMMANDS + 1)))
    loss = _loss(network)
    if network.scaled:  # load, multiply, store and branch for each adjoint
        loss["loss"] = replace(loss["loss"], element=loss["loss"].element + 4, sample=loss["loss"].sample + 6)
    return {
        # a piece: its nine fields, addresses, two counts stored, loops; a run of words: pointers, loop set-up, test;
        # four words: four loads, three ors, branch, loop; with a bit: load of each and of its first id, test, jump; a word alone: load,
        # test, loop; an id: count zeros, add the first, store, shift, exclusive or, branch: 6, and 1 more for ids that are stored from the
        # end of the list downwards, of neurons that only receive a gradient
        "relay_compact": CodeletCost(start=24, idle=12, sample=24, row=8, word=9, word_hit=16, single=4, id=7),
        # a list: its number, the smaller of two, addresses, first word and span; a run of words that is copied: loop set-up; a word: load,
        # store, branch. Joining a piece: its fields, limits, the counts after it; a count: two loads, two sums, two tests; a word of two
        # ids: two loads, shift, or, store, test, store, branch. An id that becomes a bit of a word: `lookup`; such a word stored:
        # `table_row`. The number of windows that remain: load, compare, subtract, maximum, branch
        "relay_windows": CodeletCost(
            start=24, sample=16, run=4, element=copy_ids, row=32, value=8, word=8, choice=6, lookup=8, table_row=4
        ),
        # a list: addresses, its words, number; a word whose bits are counted: load, count, add, branch; a word of the list: load,
        # test, branch; an id: count zeros, clear, add the first, choose the half word, test for room, shift, or, store, branch
        "relay_bits": CodeletCost(start=24, sample=28, value=4, word=4, id=11),
        # three fields, two bounds, addresses, loop set-up; two words: load, store
        "copy_mask": CodeletCost(start=14, element=2),
        # a row: its tile and sample, addresses, loop set-up; a value: load, store, store in a window, branch
        "relay_values": CodeletCost(start=24, row=12, value=4, element=copy_floats),
        "next_window": CodeletCost(start=16, idle=8, sample=8, element=next_ids),
        # two elements: set-up of the inner loop, store, advance; each added row: load, add
        "reduce_partials": CodeletCost(start=16, row=6, product=2),
        "gradient_window": CodeletCost(start=20, sample=14, row=6, product=2),
        **loss,
        # the largest number of further windows of any relay: a worker's share, its result; for each number: load, maximum, branch
        "most": CodeletCost(start=20, element=3),
        # the numbers of all workers; remaining windows and a flag, the sum over all iterations, the position of the iteration
        "answer": CodeletCost(start=26, element=3),
        "known": CodeletCost(start=18),  # four fields, the position of the iteration; load, test, three stores
        "count_down": CodeletCost(start=12),  # two fields; load, subtract, store, test, store
        "reduce": CodeletCost(start=16, element=2),  # load, add, branch for a float
        # private or gathered gradients, two elements at a time: per pass over up to SUMMANDS of them load and store the sum; load, add
        "update": CodeletCost(start=24, row=2, product=2, element=network.update).calling(sums),
        **_half_updates(network, sums),
        **_norm(network, sums),
        # each column: its neurons, its position, a test for the worker's share; each of its rows: two bounds, two pointers; load, store
        "weight_rows": CodeletCost(start=24, lookup=6, row=10, element=2),
        # each piece: its columns, its size, a test for the worker's share; each run of tiles with equal neurons: two numbers, two
        # products, two divisions; each tile of the run: two bounds, two pointers, set-up of the loop; load, store
        "pack_rows": CodeletCost(start=24, lookup=6, run=32, row=10, element=2),
        "transpose": CodeletCost(start=16, element=3),
        # an owned element: set to 0; a piece: load position and length, compute an address, set up the loop; a value: two loads, add, store
        "sum_pieces": CodeletCost(start=20, element=1, row=8, value=4),
        # two passes over the rows, each with loop set-up and pointers; a value: load, load the mean or first value, subtract, load the sum,
        # (multiply-)add, store, in each of them; a neuron: two sums set to 0, a division, a sum, two stores
        **({"block_moments": CodeletCost(start=28, row=12, value=12, element=20)} if network.computes_statistics else {}),
        # the first step after a boundary: a division; per state: two pointers and the set-up of a loop; a float: load, store
        "boundary": CodeletCost(start=32, row=8, element=2),
        # per step, the positions of its lists: two divisions; per list: its lengths, pointers, the set-up of a loop
        "boundary_events": CodeletCost(start=40, row=24, sample=14, element=copy_ids),
    }
