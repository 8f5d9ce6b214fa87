"""The base class of backends; each backend is one frozen object, listed in :mod:`snnc.backends.registry`.

Modules named ``backend.py``, and this one, do not import large modules: the command line reads the options of every target, even for
``--help``. Their methods import what they need.
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
"""Whether a target accepts an option: always, only if it trains, or never."""
TRAINING: Final[Mapping[str, Any]] = {"support": "with a loss"}
"""Metadata of a field: the option affects only training, so it needs a loss."""


@dataclass(frozen=True, eq=False)
class TargetOptions:
    """Options common to all targets; each backend adds its own fields.

    ``target`` is the user's target name. Other fields have the names and defaults of :func:`snnc.compile`. The metadata of a field define
    when the option is accepted: :data:`TRAINING`, or ``{"values": {value: support}}`` if that depends on the value. The target refuses
    options that it has no field for.
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
    """Options of backends that run the step program itself, without tiles."""

    seed: int = field(default=0, metadata=TRAINING)
    truncate: int | None = field(default=None, metadata=TRAINING)
    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    drop: DropPolicy = "lowest"


@dataclass(frozen=True, eq=False)
class PlacedProgram:
    """A program and its mapping, passed from one stage of a backend to the next.

    Attributes
    ----------
    program
        The step program of the network as its author wrote it.
    plan
        The mapping onto tiles; None if the target has no tiles.
    parts
        The parts or channel orders of populations, if the plan places those instead of the whole populations.
    """

    program: StepProgram
    plan: Plan | None = None
    parts: Parts | ChannelOrders | None = None

    @property
    def placed(self) -> StepProgram:
        """The program that is mapped and emitted."""
        return self.program if self.parts is None else self.parts.between.split


@dataclass(frozen=True, eq=False)
class BuiltProject:
    """A built project: its folder, and the library or other file that a session loads."""

    folder: Path
    library: Path


Own = TypeVar("Own", bound=TargetOptions)
"""The options of one backend."""


@dataclass(frozen=True, eq=False)
class Backend(Generic[Own]):
    """A target, or all targets of a kind. Subclasses override the stages that they implement.

    Attributes
    ----------
    name
        Name; for a backend that is a single target, also its value of ``--target``.
    about
        Description in ``snnc targets``; empty if each target is described by a file.
    options
        Dataclass of its options.
    heading
        Name in messages and tables, if it differs from `name`.
    synonyms
        Other names that users try; the error message for such a name suggests this target.
    emits
        Whether it writes a program that is then built. Otherwise the step program runs in this process.
    has_tiles
        Whether it maps programs onto tiles and counts the tiles' cycles.
    trains
        Whether its sessions train; otherwise only the emitted project does.
    native
        Whether :mod:`snnc.backends.native` writes its projects: the program owns the weights, ``project.json`` gives the memory needed for
        a sequence, and PyTorch can run the program as a module.
    adjoint
        Whether its program, compiled for fixed steps and samples, accepts an adjoint of the outputs from the caller, so that PyTorch
        can run it as a module.
    """

    name: str
    about: str
    options: type[Own]
    heading: str = ""
    synonyms: tuple[str, ...] = ()
    emits: bool = True
    has_tiles: bool = False
    trains: bool = True
    native: bool = False
    adjoint: bool = False

    @property
    def words(self) -> str:
        """The name of the target in messages and tables."""
        return self.heading or self.name

    def runs(self, target: str) -> bool:
        """Return whether `target`, a value of ``--target``, selects this backend."""
        return target == self.name

    def support(self, name: str, value: Any = None) -> Support:
        """Return whether an option, or one value of it, is accepted."""
        found = next((f for f in fields(self.options) if f.name == name), None)
        if found is None:
            return "refused"
        values: Mapping[str, Support] = found.metadata.get("values", {})
        if values and isinstance(value, str) and value != found.default:
            return values.get(value, "refused")
        support: Support = found.metadata.get("support", "yes")
        return support

    def own(self, chosen: Any, **more: Any) -> Own:
        """Return this backend's options, from the equally named fields of `chosen` and from `more` (values that no user chooses)."""
        names = [f.name for f in fields(self.options)]
        given = {name: getattr(chosen, name) for name in names if hasattr(chosen, name)}
        return self.options(**(given | {name: value for name, value in more.items() if name in names}))

    def prepare(self, graph: Graph, options: Own) -> Graph:
        """Return the graph in the form that this backend lowers best."""
        return graph

    def halves(self, options: Own) -> Halves:
        """Return which values the step program stores as float16; empty if the backend does its own rounding."""
        from snnc.compiler.lowering.halves import Halves

        return Halves()

    def rounding(self, options: Own) -> WeightRounding | None:
        """Return how updates of float16 weights are rounded."""
        from snnc.compiler.lowering.halves import rounding_of

        return rounding_of(getattr(options, "half", None), getattr(options, "seed", 0))

    def rounds_products(self, options: Own) -> bool:
        """Return whether forward products round their factors to fewer bits, so that results differ from those of other targets."""
        return False

    def limit(self, options: Own) -> SpikeLimit | None:
        """Return the spike limit of the step program; None if there is no limit, or for machines, whose plan contains the limit."""
        from snnc.compiler.lowering.spike_limits import limit_of

        return limit_of(options.mode, options.capacity, options.drop, options.seed) if isinstance(options, SequenceOptions) else None

    def check(self, program: StepProgram, options: Own) -> None:
        """Raise a coded error if this backend cannot run `program`."""

    def plan(self, graph: Graph, program: StepProgram, options: Own) -> PlacedProgram:
        """Return the program to emit, with its mapping if the target has tiles; `graph` was lowered to `program`."""
        return PlacedProgram(program)

    def emit(self, placed: PlacedProgram, options: Own, folder: Path) -> None:
        """Write the program into `folder`, which is empty or does not exist."""

    def build(self, folder: Path, options: Own) -> BuiltProject:
        """Build the project in `folder`, which was never built before."""
        return BuiltProject(folder, folder)

    def open(self, placed: PlacedProgram, options: Own, built: BuiltProject | None) -> Engine:
        """Return an engine that runs `built`, the result of :meth:`build`; `built` is None if the backend emits nothing."""
        raise NotImplementedError(f"the backend {self.name!r} cannot open a program")

    def next_step(self, folder: Path, trains: bool) -> str:
        """Return the command that a user runs next on a project."""
        return f"snnc train {folder} --data DATA.npz" if trains else f"snnc run {folder} --inputs x.npz --outputs y.npz"

    def threads(self, options: Own) -> int:
        """Return the number of threads that process samples; each needs its own memory."""
        return 1

    def launches(self, project: Mapping[str, Any], steps: int, batch: int) -> dict[str, Any] | None:
        """Return the predicted time of each launch of a training step, from ``project.json``; None if it contains no prediction."""
        return None

    def on_device(self) -> bool:
        """Return whether the program reads and writes arrays in GPU memory."""
        return False
