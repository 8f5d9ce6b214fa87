"""What the codelets of the emitted Poplar program cost: integers that the prediction and the printed codelets share.

A codelet counts its own worker cycles with the trip counts of its loops (``SNNC_COUNT_CYCLES``); the prediction puts
expected counts into the same formula, :func:`worker_cycles`::

    cycles = start                                                     (idle, and nothing else, when the vertex has no step)
           + sample  * samples
           + (event + event_vector * ceil(columns / 2)) * events       ids read, over all samples and buses
           + row     * rows  + product * products                      products = sum over rows of ceil(row length / 2)
           + neuron  * neurons                                         neurons x samples
           + word    * words + id * ids + element * elements
           + lookup  * lookups + found * founds + single * singles + run * runs + value * values + sample_value * sample_values
           + choice  * choices + sample_choice * sample_choices

The last two lines count indexed connections: `lookups` ids (or values) that are looked up in a table; `founds` rows of it that are walked
through; `singles` runs of one value where a table knows no others, `runs` where it does; `values` that runs add up; `sample_values`, in
source gradients, values x samples. For maxima, `choices` and `sample_choices` count in place of `values` and `sample_values`.

What each codelet counts:

==================  =========  =========  ==========================  ========================  ================================
codelet             samples    events     rows / products             neurons                   words, ids, elements
==================  =========  =========  ==========================  ========================  ================================
``forward.<p>``     of block   dense      inputs x samples for each   count x samples           ids scanned by one-to-one links
                               events     value bus / x columns/2                               (id), one-to-one values (element)
``gather.<p>``      as forward, for the further window alone
``backward.<p>``    of block   dense      as forward                  count x samples           as forward
``weight_round.<p>``as backward, for the further window alone
``source_gradient.<p>`` of block  0       count x samples for each    0                         one-to-one values (element)
                                          link / x outputs/2
``relay_events``    of vertex  0          0                           0                         mask words read (word), ids
                                                                                                written to the store (id), ids
                                                                                                copied to windows (element)
``relay_input``     of vertex  0          0                           0                         ids copied to windows (element)
``relay_values``    of vertex  0          0                           0                         floats copied (element)
``next_window``     of vertex  0          0                           0                         ids copied (element)
``loss``            1          0          0                           0                         steps x classes (element)
``reduce``          0          0          0                           0                         floats summed (element)
``update``          0          0          products: pairs of private  0                         parameters updated (element)
                                          gradients summed
``transpose``       0          0          0                           0                         floats moved (element)
==================  =========  =========  ==========================  ========================  ================================

Loops are those of compiled C++ (an aligned fp32 add takes 4 bundles for 2 floats: Poplar's tutorials and PopLibs); nothing
is dual issued, and the equations run one neuron at a time (a block mostly has one or two columns). Starting a vertex costs
``Target.vertex_start_cycles`` besides; a tile cycle serves one of its six workers, so a tile takes 6 cycles for each worker cycle.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from snnc.compiler.mapping.network import Layer, Network, describe
from snnc.compiler.mapping.operations import pair_cycles
from snnc.compiler.step_program import StepProgram


@dataclass(frozen=True)
class CodeletCost:
    """Worker cycles of one codelet; see the module's page for what each coefficient is multiplied with."""

    start: int = 0
    idle: int = 0
    sample: int = 0
    event: int = 0
    event_vector: int = 0
    row: int = 0
    product: int = 0
    neuron: int = 0
    word: int = 0
    id: int = 0
    element: int = 0
    lookup: int = 0
    found: int = 0
    single: int = 0
    run: int = 0
    value: int = 0
    sample_value: int = 0
    choice: int = 0
    sample_choice: int = 0

    def to_dict(self) -> dict[str, int]:
        """Coefficients by name."""
        return asdict(self)


def worker_cycles(
    cost: CodeletCost,
    *,
    samples: Any = 0,
    events: Any = 0,
    columns: Any = 1,
    rows: Any = 0,
    products: Any = 0,
    neurons: Any = 0,
    words: Any = 0,
    ids: Any = 0,
    elements: Any = 0,
    lookups: Any = 0,
    founds: Any = 0,
    singles: Any = 0,
    runs: Any = 0,
    values: Any = 0,
    sample_values: Any = 0,
    choices: Any = 0,
    sample_choices: Any = 0,
) -> Any:
    """Worker cycles of one run of a vertex that has a step; counts are numbers or NumPy arrays of one shape.

    Examples
    --------
    >>> worker_cycles(CodeletCost(start=20, event=6, event_vector=4), events=10, columns=3)
    160
    """
    return (
        cost.start
        + cost.sample * samples
        + (cost.event + cost.event_vector * ((columns + 1) // 2)) * events
        + cost.row * rows
        + cost.product * products
        + cost.neuron * neurons
        + cost.word * words
        + cost.id * ids
        + cost.element * elements
        + cost.lookup * lookups
        + cost.found * founds
        + cost.single * singles
        + cost.run * runs
        + cost.value * values
        + cost.sample_value * sample_values
        + cost.choice * choices
        + cost.sample_choice * sample_choices
    )


def codelet_costs(program: StepProgram, training: bool | None = None) -> dict[str, CodeletCost]:
    """Return the coefficients of every codelet of `program`.

    Keys are codelet names; those that depend on the population carry its id (``"forward.p0"``). Populations of one structure
    (kernel, number and kind of links, learned parameters) have equal coefficients, so one codelet serves them.
    """
    return network_costs(describe(program, training))


def network_costs(network: Network) -> dict[str, CodeletCost]:
    """As :func:`codelet_costs`, for a network that is described already."""
    costs = dict(_shared(network))
    for layer in network.layers:
        costs[f"forward.{layer.id}"] = _forward(layer, network.training)
        costs[f"gather.{layer.id}"] = _events_only()
        if network.training:
            costs[f"backward.{layer.id}"] = _backward(layer)
            costs[f"source_gradient.{layer.id}"] = _source_gradient(layer)
            costs[f"weight_round.{layer.id}"] = _events_only()
    return costs


# ---- populations -----------------------------------------------------------------------------------------------------
#
# An event: load the id, multiply by the row's length, add the base, set up the inner loop, test for an empty row, branch: 6.
# A vector of two columns: load the row, load the sum, add, store: 4 (facts: 4 bundles for 2 floats).
# A row of products: load the value, splat it, advance, set up the loop: 4 to 8; a vector: load, load, multiply, add, store: 5.

# Indexed connections. A lookup: load the id, subtract the first row, compare with the number of rows, branch: 4; where rows have keys, each
# event and each key: load, compare, branch, advance. A row that is walked through: load where its runs begin and end, compare, branch: 4.
# A run of one value: load its place and its weight's, form no loop, branch: 4; a longer one loads its length, forms two addresses and sets
# up a loop besides: 8. A value: load the weight, load the sum, (multiply-)add, store: 4, one float at a time, because runs begin anywhere.
# A choice: load what is chosen so far, compare twice, load, add and store the sum, store the number: 8.

_EVENT, _EVENT_VECTOR, _ROW, _PRODUCT = 6, 4, 5, 5
_RUNS: Final = {"lookup": 4, "found": 4, "single": 4, "run": 8, "value": 4, "choice": 8}


def _forward(layer: Layer, training: bool) -> CodeletCost:
    kernel = layer.kernel
    loads = len(kernel.inputs) + len(kernel.states) + layer.neuron_parameters
    stores = len(kernel.states) + (len(kernel.saved) if training else 0) + layer.records
    fill = 2 * len(kernel.inputs)
    return CodeletCost(
        start=24 + 8 * len(layer.incoming),
        idle=8,
        sample=4 + _sample(layer),
        event=_EVENT,
        event_vector=_EVENT_VECTOR,
        row=_ROW,
        product=_PRODUCT,
        neuron=pair_cycles(kernel.forward) + loads + stores + fill + 2 + _sending(layer),
        id=5,  # load, subtract the first, compare with the count, branch, advance; adds are counted as part of it
        element=3,  # two floats: load, load the current, add or multiply-add, store, advance
        **_RUNS,
    )


def _backward(layer: Layer) -> CodeletCost:
    kernel = layer.kernel
    loads = 2 * len(kernel.history) + len(kernel.saved) + len(kernel.states) + layer.neuron_parameters
    loads += sum(1 + (s.buffer in layer.adjoint_outputs) for s in layer.sent) or len(layer.adjoint_outputs)
    stores = len(kernel.states) + len(kernel.inputs)
    sums = 3 * (layer.learnable_neuron_parameters + layer.learnable_scalars)
    return CodeletCost(
        start=28 + 8 * len(layer.incoming),
        idle=8,
        sample=4 + _sample(layer),
        event=_EVENT,
        event_vector=_EVENT_VECTOR,
        row=_ROW,
        product=_PRODUCT,
        neuron=pair_cycles(kernel.backward) + loads + stores + sums + 2,
        id=5,
        element=3,
        **_RUNS,
    )


def _sample(layer: Layer) -> int:
    """Each link: its count, its pointers and the set-up of its loop."""
    return sum(8 if link.events else 4 for link in layer.incoming)


def _sending(layer: Layer) -> int:
    """Setting a bit of the mask (shift, or, and a store each 32 neurons), or storing a value."""
    return sum(3 if source.kind == "spikes" else 1 for source in layer.sent)


def _events_only() -> CodeletCost:
    return CodeletCost(start=16, idle=8, sample=8, event=_EVENT, event_vector=_EVENT_VECTOR, id=5, **_RUNS)


def _source_gradient(layer: Layer) -> CodeletCost:
    links = sum(link.input_gradient for link in layer.outgoing)
    return CodeletCost(
        start=16 + 8 * links,
        idle=8,
        sample=4,
        row=8,  # pointers, loop, sum of the two halves, load, add and store the gradient
        product=4,  # load, load, multiply, add; the sum stays in registers
        element=4,
        found=24,  # bounds of the row, zeroes, and load, add and store for eight samples, two at a time
        single=4,
        run=8,
        value=2,  # load the weight, form the address of the deltas; then for each two samples load and multiply-add
        sample_value=1,
        sample_choice=7,  # load the number of what was chosen, compare, branch, load the delta and the sum, add, store
    )


# ---- codelets that all populations share -----------------------------------------------------------------------------


def _shared(network: Network) -> dict[str, CodeletCost]:
    copy_ids = 1  # four 16-bit ids in a 64-bit load and store with the loop's branch, rounded up
    copy_floats = 2  # load, store and branch for two floats, rounded up
    adam = 19  # load g, m, v, w; 12 products and sums; square root and division 10 each; store m, v, w, 0; halved
    return {
        # a word: load, test, branch; an id: count zeros, clear the bit, add the base, and a 16-bit store (load, mask, or, store), advance
        "relay_events": CodeletCost(start=20, idle=8, sample=10, word=4, id=10, element=copy_ids),
        "relay_input": CodeletCost(start=16, idle=8, sample=8, element=copy_ids),
        "relay_values": CodeletCost(start=16, idle=8, sample=6, element=copy_floats),
        "next_window": CodeletCost(start=16, idle=8, sample=8, element=copy_ids),
        "loss": CodeletCost(start=30, sample=20, element=12),  # read, exp (3), sum, scale, write, in two sweeps
        "reduce": CodeletCost(start=16, element=2),  # load, add, branch for a float
        "update": CodeletCost(start=24, product=4, element=adam if network.moments == 2 else 5 + network.moments),
        "transpose": CodeletCost(start=16, element=3),
        # an owned element is zeroed; a piece: load place and length, form an address, set up the loop; a value: load, load, add, store
        "sum_pieces": CodeletCost(start=20, element=1, row=8, value=4),
    }
