"""The base class of backends; each backend is one object, listed in :mod:`snnc.backends.registry`.

In this module and all others with the name ``backend.py``, methods import what they need, so that importing the module takes no time: the
command line reads the options of every target, even for ``--help``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.graph import Graph
    from snnc.compiler.ir.plan import Mode, Plan
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.losses import Loss
    from snnc.compiler.losses.optimizers import Optimizer
    from snnc.compiler.losses.weight_rounding import WeightRounding
    from snnc.compiler.lowering.capacities import Capacities
    from snnc.compiler.lowering.halves import Halves
    from snnc.compiler.lowering.spike_limits import DropPolicy, SpikeLimit
    from snnc.compiler.neurons.surrogates.surrogate import Surrogate
    from snnc.compiler.tiles.planning.options import PlanOptions
    from snnc.compiler.tiles.planning.ordering import ChannelOrders
    from snnc.compiler.tiles.planning.parting import Parts

Support: TypeAlias = Literal["yes", "with a loss", "refused"]
"""Whether a target accepts an option: always, only with a loss, or never."""
TRAINING: Final[Mapping[str, Any]] = {"support": "with a loss"}
"""Metadata of the field of an option that affects only training."""


@dataclass(frozen=True, eq=False)
class TargetOptions:
    """Options that all targets accept, with the names and defaults of :func:`snnc.compile`; backends add fields for others.

    The metadata of a field define when the option is accepted: always without metadata, only with a loss for :data:`TRAINING`, or for each
    value its support in ``{"values": {value: support}}``.
    """

    target: str
    steps: int | None = None
    batch: int | None = None
    loss: Loss | None = None
    loss_output: str | None = field(default=None, metadata=TRAINING)
    optimizer: Optimizer | None = field(default=None, metadata=TRAINING)
    surrogate: Surrogate | None = field(default=None, metadata=TRAINING)
    gradient_window: tuple[float, float] | None = field(default=None, metadata=TRAINING)

    def for_plan(self) -> PlanOptions | None:
        """Return the options of the mapping onto tiles; None if the target has no tiles."""
        return None


@dataclass(frozen=True, eq=False)
class SequenceOptions(TargetOptions):
    """Options of backends without tiles."""

    seed: int = field(default=0, metadata=TRAINING)
    truncate: int | None = field(default=None, metadata=TRAINING)
    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    drop: DropPolicy = "lowest"


@dataclass(frozen=True, eq=False)
class PlacedProgram:
    """A step program and its mapping onto tiles."""

    program: StepProgram
    """The step program of the network as its author wrote it."""
    plan: Plan | None = None
    """The mapping; None if the target has no tiles."""
    parts: Parts | ChannelOrders | None = None
    """How the plan divides populations into parts, or reorders their channels; None if it does neither."""

    @property
    def placed(self) -> StepProgram:
        """The program that is mapped and emitted."""
        return self.program if self.parts is None else self.parts.correspondence.program_of_parts


@dataclass(frozen=True, eq=False)
class BuiltProject:
    """A built project: its folder, and the file that a session loads, such as a shared library."""

    folder: Path
    library: Path


Options = TypeVar("Options", bound=TargetOptions)
"""The options of one backend."""


@dataclass(frozen=True, eq=False)
class Backend(Generic[Options]):
    """A target, or all targets of a kind."""

    name: str
    """Name; the value of ``--target`` for a backend that is a single target."""
    about: str
    """Description in ``snnc targets``; empty if each target of the backend has a file with its description."""
    options: type[Options]
    """Dataclass of its options."""
    heading: str = ""
    """Name in messages and tables, if it differs from `name`."""
    synonyms: tuple[str, ...] = ()
    """Other names that users try, for which an error message suggests this target."""
    emits: bool = True
    """Whether it writes and builds a program. Otherwise the step program runs in this process."""
    has_tiles: bool = False
    """Whether it maps programs onto tiles and counts the tiles' cycles."""
    trains: bool = True
    """Whether its sessions train; otherwise only the emitted project does."""
    native: bool = False
    """Whether :mod:`snnc.backends.native` writes its projects, which PyTorch can run as modules."""
    adjoint: bool = False
    """Whether PyTorch can run its programs, compiled for fixed numbers of steps and samples, as modules: they accept the adjoint of the
    outputs from the caller."""

    @property
    def shown_name(self) -> str:
        """The name of the target in messages and tables."""
        return self.heading or self.name

    def runs(self, target: str) -> bool:
        """Return whether `target`, a value of ``--target``, selects this backend."""
        return target == self.name

    def support(self, name: str, value: Any = None) -> Support:
        """Return whether an option, or one value of it, is accepted."""
        option = next((f for f in fields(self.options) if f.name == name), None)
        if option is None:
            return "refused"
        values: Mapping[str, Support] = option.metadata.get("values", {})
        if values and isinstance(value, str) and value != option.default:
            return values.get(value, "refused")
        support: Support = option.metadata.get("support", "yes")
        return support

    def options_from(self, chosen: Any, **more: Any) -> Options:
        """Return this backend's options, from the fields of `chosen` with the same names and from `more`; other fields are ignored."""
        names = [f.name for f in fields(self.options)]
        values = {name: getattr(chosen, name) for name in names if hasattr(chosen, name)}
        return self.options(**(values | {name: value for name, value in more.items() if name in names}))

    def prepare(self, graph: Graph, options: Options) -> Graph:
        """Return the graph in the form that this backend lowers best."""
        return graph

    def halves(self, options: Options) -> Halves:
        """Return which values the step program stores as float16."""
        from snnc.compiler.lowering.halves import halves_of

        return halves_of(getattr(options, "precision", "float32"), getattr(options, "half", None), trains=options.loss is not None)

    def rounding(self, options: Options) -> WeightRounding | None:
        """Return how updates of float16 weights are rounded."""
        from snnc.compiler.lowering.halves import rounding_of

        return rounding_of(getattr(options, "half", None), getattr(options, "seed", 0))

    def rounds_products(self, options: Options) -> bool:
        """Return whether forward products round their factors to fewer bits, so that results differ from those of other targets."""
        return False

    def limit(self, options: Options) -> SpikeLimit | None:
        """Return the limit on the spikes that a source sends; None if there is none."""
        from snnc.compiler.lowering.spike_limits import limit_of

        return limit_of(options.mode, options.capacity, options.drop, options.seed) if isinstance(options, SequenceOptions) else None

    def check(self, program: StepProgram, options: Options) -> None:
        """Raise a coded error if this backend cannot run `program`."""

    def plan(self, graph: Graph, program: StepProgram, options: Options) -> PlacedProgram:
        """Return the program, with its mapping if the target has tiles; `program` is the lowered `graph`."""
        return PlacedProgram(program)

    def emit(self, placed: PlacedProgram, options: Options, folder: Path) -> None:
        """Write the program into `folder`, which is empty or does not exist."""

    def build(self, folder: Path, options: Options) -> BuiltProject:
        """Build the project in `folder`."""
        return BuiltProject(folder, folder)

    def open(self, placed: PlacedProgram, options: Options, built: BuiltProject | None) -> Engine:
        """Return an engine that runs `built`, or that runs the program in this process if `built` is None."""
        raise NotImplementedError(f"the backend {self.name!r} cannot open a program")

    def next_command(self, folder: Path, trains: bool) -> str:
        """Return the command that a user runs next on a project."""
        return f"snnc train {folder} --data DATA.npz" if trains else f"snnc run {folder} --inputs x.npz --outputs y.npz"

    def threads(self, options: Options) -> int:
        """Return the number of threads that process samples; each needs its own memory."""
        return 1

    def launches(self, project: Mapping[str, Any], steps: int, batch: int) -> dict[str, Any] | None:
        """Return the predictions of ``project.json`` for the kernel launches of a training step or forward pass; None if it has none."""
        return None

    def on_device(self) -> bool:
        """Return whether the program reads and writes arrays in GPU memory."""
        return False
