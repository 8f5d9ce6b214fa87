"""The custom operation of a package: inputs, outputs and network. Its backward pass starts from the gradient of an output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from snnc.backends.poplar.emit import add_network, gradient_codelets, network_context
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import Assembly, Body
from snnc.backends.poplar.schedule import program_values
from snnc.backends.poplar.tables import parameters_and_states
from snnc.backends.poplar.vertices.external import SUM, SUM_TITLE, adjoint_name, loss_output, population_of, sum_for_update
from snnc.backends.poplar.vertices.losses import RATES
from snnc.backends.poplar.vertices.relays import counter_name
from snnc.backends.poplar.vertices.statistics import moments_codelets
from snnc.backends.poptorch.errors import UnsupportedOnPopTorchError
from snnc.backends.poptorch.statistics import norm_data, running
from snnc.backends.training.updates.masks import DropoutLayer, masks_of
from snnc.backends.training.updates.norm_layers import NormLayer, norm_layers
from snnc.compiler.ir.graph import Array
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import InputInfo, OutputInfo, StepProgram
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.statistics import visible
from snnc.compiler.tiles.vertices.cost import CodeletCost

PACK_COST: Final = CodeletCost(start=20, sample=12, word=6, value=4)
LIST_COST: Final = CodeletCost(start=20, sample=14, word=5, id=4)
ROUND_COST: Final = CodeletCost(start=16, value=6)
"""Worker cycles of the codelets that convert inputs of the operation: instructions in their loops, counted by hand.

The first two convert spikes to the formats of relays, the third rounds initial states to float16.
"""


@dataclass(frozen=True)
class OperationInput:
    """A tensor that enters or leaves the operation: its name in the program, its shape, and a label for comments."""

    name: str
    shape: tuple[int, ...]
    label: str


@dataclass(frozen=True, eq=False)
class PopartOperation:
    """A program and its plan as one operation of PopART.

    Raises an UnsupportedOnPopTorchError if the number of IPUs is not a power of two, inference needs several IPUs, or the plan uses memory
    outside the tiles.
    """

    program: StepProgram
    plan: Plan
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Buffer -> capacity and key of the random choice of spikes, for each source with a spike limit."""

    def __post_init__(self) -> None:
        target = self.plan.target
        if target.chips & (target.chips - 1):
            raise UnsupportedOnPopTorchError(
                f"{target.name} has {target.chips} IPUs, but a PopTorch model must use 1, 2, 4, 8 … IPUs; compile for such a machine."
            )
        if target.chips > 1 and not self.plan.training:
            raise UnsupportedOnPopTorchError(
                f"the plan uses {target.chips} IPUs of {target.name}, but a package for inference can use only one, "
                "because the others have no operations; give a loss, or compile for one IPU (--target poptorch or poptorch:bow)."
            )
        if self.plan.streamed != "off":
            raise UnsupportedOnPopTorchError(
                f"the plan stores {self.plan.streamed} outside the tiles, but a custom operation can use only tiles; compile with "
                "--streaming off, or with a smaller --batch."
            )

    @cached_property
    def net(self) -> PoplarNetwork:
        """The network as template data; PyTorch updates the parameters, so tiles store no optimiser state."""
        program = replace(self.program, optimizer=SGD() if self.plan.training else None)
        return PoplarNetwork(program, self.plan, self.limits, operation=True)

    @cached_property
    def inputs(self) -> tuple[InputInfo, ...]:
        """Inputs with at least one reader."""
        used = {store.owner for store in self.net.stores.values()}
        return tuple(i for i in self.program.inputs if i.id in used)

    @cached_property
    def visible_outputs(self) -> tuple[OutputInfo, ...]:
        """Outputs of the network, without those for statistics of normalisations."""
        return visible(self.program).outputs

    @cached_property
    def outputs(self) -> tuple[OutputInfo, ...]:
        """Visible outputs that populations write; the others read an input of the network directly."""
        sources = {f"{i.id}_in" for i in self.program.inputs}
        return tuple(o for o in self.visible_outputs if o.source.buffer not in sources)

    @cached_property
    def norms(self) -> tuple[NormLayer, ...]:
        """Batch normalisations whose statistics the operation computes in training."""
        return norm_layers(self.program) if self.plan.training else ()

    @cached_property
    def masks(self) -> dict[str, DropoutLayer]:
        """Dropout layers by the names of their masks, [batch, neurons].

        In training, masks are inputs of the operation, because each sample of each update has its own.
        """
        masks = {}
        for layer in masks_of(self.program).layers if self.plan.training else ():
            states = self.program.population(layer.population).kernel.states
            masks[f"{self.net.step(layer.population).states[states.index(layer.state)]}_initial"] = layer
        return masks

    @cached_property
    def stored_values(self) -> dict[str, Array]:
        """The part of :attr:`values` that the package stores: all but masks, which it draws."""
        return {name: value for name, value in self.values.items() if name not in self.masks}

    @cached_property
    def values(self) -> dict[str, Array]:
        """Parameters, states before step 0, and spike limits, by their names in the program.

        States have one value for each neuron, which all samples share, except masks of dropout layers, which are [batch, neurons].
        """
        values = parameters_and_states(self.net)
        for name, layer in self.masks.items():
            values[name] = np.broadcast_to(values[name], (self.plan.batch, layer.neurons))
        return values | {f"{name}_limit": np.array(self.limits[name], dtype=np.float32) for name in self.limited}

    @cached_property
    def limited(self) -> tuple[str, ...]:
        """Buffers of populations with a spike limit, which their relays apply."""
        return tuple(name for name, store in self.net.stores.items() if store.drops_spikes and name in self.limits)

    @cached_property
    def counted(self) -> dict[str, int]:
        """Counters of dropped spikes -> number of elements: one per worker of each relay.

        Relays count what a limit of a population drops; the host drops and counts spikes of the inputs in `limits`. For other sources, the
        bus with the smallest window counts the spikes that it drops.
        """
        sizes: dict[str, int] = {}
        for name, store in self.net.stores.items():
            smallest, size = min(store.buses, key=lambda bus: bus.capacity), len(store.buses[0].relays) * self.net.plan.target.workers
            if store.drops_spikes:
                sizes[f"{name}_dropped"] = size
            elif store.kind == "events" and name not in self.limits and smallest.mode == "drop" and smallest.capacity < smallest.width:
                sizes[counter_name(self.net, smallest)] = size
        return sizes

    @cached_property
    def learned(self) -> frozenset[str]:
        """Parameters that receive a gradient."""
        if not self.plan.training:
            return frozenset()
        constant = {c.weight for c in self.program.connections if c.target in self.relays}
        return frozenset(op.parameter for op in self.program.update) - constant

    @cached_property
    def relays(self) -> Mapping[str, str]:
        """Relay population -> input, for the relay populations that store the adjoint of an input."""
        shown = {p.id for p in self.program.populations if p.shown} if self.plan.training else set()
        return {c.target: c.source for c in self.program.connections if c.target in shown}

    @cached_property
    def with_gradient(self) -> Mapping[str, str]:
        """Input -> relay population, for the inputs whose gradient is returned; static inputs have no gradient."""
        static = {i.id for i in self.inputs if i.static}
        return {source: relay for relay, source in self.relays.items() if source not in static}

    @cached_property
    def operation_inputs(self) -> tuple[OperationInput, ...]:
        """Inputs of the operation, in order: the inputs of the network, then :attr:`values`."""
        plan = self.plan
        sequences = [OperationInput(i.id, (plan.batch, *(() if i.static else (plan.steps,)), *i.shape), i.label) for i in self.inputs]
        labels = {name: p.label for name, p in self.program.parameters.items()} | {f"{name}_limit": "spike limit" for name in self.limited}
        return (
            *sequences,
            *(OperationInput(name, value.shape, labels.get(name, "before step 0")) for name, value in self.values.items()),
        )

    @cached_property
    def loss_output(self) -> OutputInfo | None:
        """The output that the loss reads; None without training."""
        return loss_output(self.net) if self.plan.training else None


def assemble(operation: PopartOperation) -> tuple[Assembly, Body]:
    """Return the parts of the network, and the context of its templates."""
    net, assembly = operation.net, Assembly()
    extras = add_network(net, assembly)
    if net.training:
        extras += gradient_codelets(net)
        extras += moments_codelets(net)
        sum_for_update(net, assembly)
        adjoint, population = adjoint_name(net), population_of(net, loss_output(net))
        assembly.tensors.append(f'adjoint("{adjoint}", {adjoint}.all, order_of_records({population}, STEPS, BATCH));')
    if any(s.external and s.kind == "events" for s in net.stores.values()):
        extras.append({"template": "pack_input", "cost": PACK_COST})
    if any(s.external and s.kind == "events" and not s.bits for s in net.stores.values()):
        extras.append({"template": "list_input", "cost": LIST_COST})
    if any(p.kernel.halves for p in net.program.populations):
        extras.append({"template": "round_values", "cost": ROUND_COST})
    context = network_context(net, assembly, program_values(net, assembly, "operation"))
    absent = ("update_parameters", RATES, SUM)
    needed = [s for s in context["compute_sets"] if not s["name"].startswith("loss_") and s["name"] not in absent]
    sums = [{"name": SUM, "title": SUM_TITLE}] if net.training else []
    # Statements that expose parameters to a host become statements that tell on which tiles PopTorch must place them.
    parameters = [line for line in assembly.tensors if " SNNC_PARAMETER," in line]
    places = [
        line.replace("tensor(", "place(", 1).replace(" SNNC_PARAMETER,", "", 1).removesuffix(", true);") + ");" for line in parameters
    ]
    placed = frozenset(line.split('"')[1] for line in parameters)
    return assembly, {**context, "compute_sets": needed + sums, "extras": extras, "places": places, "placed": placed}


def operation_context(operation: PopartOperation) -> Body:
    """Return the template data of the operation, in addition to those of the network."""
    plan, output = operation.plan, operation.loss_output
    numbers = {operation_input.name: index for index, operation_input in enumerate(operation.operation_inputs)}
    backward: Body | None = None
    if output is not None:
        backward = {
            "output": operation.outputs.index(output),
            "adjoint": f"d_{output.record}",
            "neurons": int(np.prod(output.shape)),
            "gradients": [
                {"name": f"d_{name}", "input": numbers[name]} for name in operation.program.parameters if name in operation.learned
            ],
            "inputs": [{"name": f"d_{relay}", "input": numbers[name]} for name, relay in operation.with_gradient.items()],
        }
    return {
        "op_inputs": operation.operation_inputs,
        "op_outputs": [OperationInput(o.record, (plan.batch, plan.steps, *o.shape), o.label) for o in operation.outputs],
        "op_counts": [OperationInput(name, (size,), "dropped spikes") for name, size in operation.counted.items()],
        "backward": backward,
        "masks": bool(operation.masks),
        "norms": [norm_data(operation.program, norm) for norm in operation.norms],
        "norm_statistics": [{"name": name, "input": numbers[name]} for norm in operation.norms for name in running(norm)],
        "norm_levels": 1 + max((norm.level for norm in operation.norms), default=-1),
    }
