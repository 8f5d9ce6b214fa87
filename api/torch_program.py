"""Program of a :class:`snnc.torch.Module`: its recipe as data, the lowered program, and the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from snnc.backends.backend import PlacedProgram
from snnc.backends.native.adjoint import with_input_gradients, with_joined_outputs
from snnc.backends.native.sequence_engine import SequenceEngine
from snnc.backends.registry import BACKENDS, synonyms
from snnc.backends.runtime.engine import AdjointEngine
from snnc.backends.runtime.errors import NormalisationError, UnknownNameError
from snnc.compiler.files.temporary import TemporaryFolder
from snnc.compiler.ir.graph import Array, Graph, Output, Shape
from snnc.compiler.ir.graph_data import graph_from_data, graph_to_data
from snnc.compiler.ir.shapes import port_map
from snnc.compiler.ir.step_program import OutputInfo, StepProgram
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.lowering.statistics import normalisations
from snnc.compiler.lowering.window_values import is_run_value
from snnc.errors import OptionValueError
from snnc.options.compile_options import CompileOptions, from_data, to_data


@dataclass(frozen=True, eq=False)
class ModuleRecipe:
    """Everything needed to create a module, except its learned weights."""

    graph: Graph
    options: CompileOptions
    outputs: tuple[str, ...]
    """Names of the returned outputs, in order."""
    input_gradients: bool

    def to_state(self) -> dict[str, Any]:
        """Return the recipe as JSON types and arrays, for copying and pickling."""
        arrays: list[Array] = []

        def keep(node: str, field: str, array: Array) -> int:
            del node, field
            arrays.append(array)
            return len(arrays) - 1

        rest = {"options": to_data(self.options), "outputs": list(self.outputs), "input_gradients": self.input_gradients}
        return {"graph": graph_to_data(self.graph, keep), "arrays": arrays, **rest}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ModuleRecipe:
        """Reverse :meth:`to_state`."""
        graph = graph_from_data(state["graph"], lambda node, field, number: state["arrays"][number])
        return cls(graph, from_data(state["options"]), tuple(state["outputs"]), state["input_gradients"])


@dataclass(frozen=True, eq=False)
class ModuleProgram:
    """The lowered program of a module, with one output; PyTorch computes the loss from it, and gives the program its adjoint.

    `output` joins all outputs of the module along one axis; `shapes` are their shapes, in this order. `input_adjoints` is the name of the
    gradient tensor by id of the input, for inputs with gradients. `internal_parameters` are parameters of the program that
    the network does not have.
    """

    program: StepProgram
    output: OutputInfo
    shapes: tuple[Shape, ...]
    input_adjoints: Mapping[str, str]
    internal_parameters: frozenset[str | None]


def chosen_outputs(graph: Graph, requested: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the requested outputs, by default all; raise UnknownNameError for an unknown name or an empty list."""
    known = [name for name, _ in graph.of_type(Output)]
    names = tuple(known) if requested is None else (requested,) if isinstance(requested, str) else tuple(requested)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        what = f"has no output {unknown[0]!r}" if unknown else "needs at least one output name"
        raise UnknownNameError(f"{graph.name!r} {what}; it has {', '.join(map(repr, known))}.")
    return names


def lower_module(recipe: ModuleRecipe) -> ModuleProgram:
    """Lower the network of a module to a program with an external loss."""
    graph, names, options = recipe.graph, recipe.outputs, recipe.options
    if normalisations(graph) and not options.backend.native:
        raise NormalisationError(
            f"{normalisations(graph)[0]!r} normalises over a batch, but the program of a module on a tile machine runs each batch only "
            "once; use the targets 'cpu' or 'cuda', train in snnc.compile(...), or use torch.nn normalisation between two modules."
        )
    ports = port_map(graph)
    shapes = tuple(ports[name, "in"].shape for name in names)
    relays: dict[str, str] = {}
    output = names[0]
    if len(names) > 1:
        graph, output = with_joined_outputs(graph, names)
    if recipe.input_gradients:
        graph, relays = with_input_gradients(graph)
    program = lower(
        graph,
        loss=ExternalLoss(tuple(relays.values())),
        loss_output=output,
        optimizer=SGD(0.0),
        surrogate=options.surrogate,
        gradient_window=options.gradient_window,
        steps=options.steps,
        truncate=options.truncate,
        half=options.backend.halves(options.for_backend()),
        rounding=options.backend.rounding(options.for_backend()),
    )
    ids = {p.label: p.id for p in program.populations}
    relay_ids = {ids[relay] for relay in relays.values()}
    return ModuleProgram(
        program,
        next(o for o in program.outputs if o.id == program.loss_output),
        shapes,
        {i.id: f"d_{ids[relays[i.label]]}" for i in program.inputs if i.label in relays},
        frozenset((*(c.weight for c in program.connections if c.target in relay_ids), *filter(is_run_value, program.parameters))),
    )


def opened(
    graph: Graph, program: StepProgram, options: CompileOptions, device: int | None
) -> tuple[SequenceEngine | AdjointEngine, TemporaryFolder]:
    """Build a program in a temporary folder and load it; the engine needs the returned folder."""
    backend = options.backend
    if backend.adjoint:
        # embedded: neurons keep the author's order, as in PyTorch's tensors.
        accepted = options.for_backend(embedded=True, other_targets=synonyms())
        backend.check(program, accepted)
        placed, for_emission = backend.plan(graph, program, accepted), accepted
    elif backend.native:
        accepted = options.for_backend(device=device)
        # Modules accept sequences and batches of any size, so the memory limit is checked at each run.
        placed, for_emission = PlacedProgram(program), replace(accepted, steps=None, batch=None, memory=None)
    else:
        native = ", ".join(repr(b.name) for b in BACKENDS if b.native)
        raise OptionValueError(f"a module runs on the targets {native} and on machines (gc200, pod4, …), not on {options.target!r}.")
    temporary = TemporaryFolder(prefix="snnc-torch-")
    folder = temporary.path / "project"
    backend.emit(placed, for_emission, folder)
    engine = backend.open(placed, accepted, backend.build(folder, accepted))
    # A tile machine returns a different engine only for a program whose populations are divided into parts; with `embedded`, none are.
    assert isinstance(engine, SequenceEngine | AdjointEngine), type(engine)
    return engine, temporary
