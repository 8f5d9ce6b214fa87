"""Read a model in any supported form and return its Graph."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import TypeAlias

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Graph, Input
from snnc.compiler.lowering.capacities import Capacities
from snnc.compiler.passes.edit import replace_operation
from snnc.data.checks import is_whole
from snnc.errors import ModelFormatError, NoTimeStepError, OptionValueError, ProjectFolderError
from snnc.frontends.dsl.network import Network
from snnc.options.compile_options import OPTIONS_FILE, SIZES, CompileOptions, from_data
from snnc.project.graph_file import SavedModel
from snnc.project.trained import read_trained

Model: TypeAlias = str | Path | Graph | Network
"""Everything that can be turned into a graph."""


def as_graph(
    model: Model,
    *,
    dt: float | None = None,
    dialect: str | None = None,
    input_kind: str | None = None,
    steps: int | None = None,
    lenient: bool = False,
    detach: str | None = None,
) -> Graph:
    """Turn any model into a new graph.

    `steps` replaces the number of steps of a model that defines one, and `input_kind` (``"spikes"`` or ``"values"``) the kind of its
    inputs. With `lenient`, a project whose trained weights cannot be used keeps those it was compiled with. For `dt`, `dialect`, `detach`
    and errors see :func:`load_model`.
    """
    if not isinstance(model, Network | Graph | str | Path):
        raise ModelFormatError(f"{type(model).__name__} is not a model; give an snnc.Network, a graph, or the path of an .onnx file.")
    if isinstance(model, str | Path) and not is_project(model):
        graph = load_model(model, dt=dt, dialect=dialect, detach=detach)
    elif isinstance(model, str | Path):
        check_unread_options(f"the project {str(model)!r}", dt, dialect, detach)
        graph = read_trained(load_project(model)[0], Path(model), lenient)
    else:
        what = "network" if isinstance(model, Network) else "graph"
        check_unread_options(f"the {what} {model.name!r}", dt, dialect, detach)
        graph = model.graph() if isinstance(model, Network) else model.copy()
    if steps is not None and graph.steps not in (None, steps):
        graph.assumptions.append(f"The model has {graph.steps} time steps; {steps} are used, as requested.")
        graph.steps = steps
    if input_kind is not None:
        _set_input_kind(graph, input_kind)
    return graph


def _set_input_kind(graph: Graph, kind: str) -> None:
    if kind not in ("spikes", "values"):
        raise ModelFormatError(f"the input kind {kind!r} is unknown; it must be 'spikes' or 'values'.")
    for name, operation in list(graph.of_type(Input)):
        replace_operation(graph, name, Input(operation.shape, kind, operation.layout))  # type: ignore[arg-type]  # checked above


def load_model(path: str | Path, *, dt: float | None = None, dialect: str | None = None, detach: str | None = None) -> Graph:
    """Read a model file.

    Parameters
    ----------
    path
        The file; its content decides the format.
    dt
        Seconds per time step, for models in continuous time.
    dialect
        Framework whose conventions apply to a NIR file: ``"nir"`` (the format's own, default), ``"snntorch"``, ``"norse"``,
        ``"spikingjelly"`` or ``"spyx"``.
    detach
        Where gradients stop inside neurons, which model files do not define. ``"reset"`` (default): the neuron's own spike is a constant
        in its reset, as in snnTorch. ``"none"``: nowhere, as by default in SpikingJelly. ``"all"``: wherever the neuron reads its own
        spike: in resets, in adaptation, and in feedback without a synapse.

    Raises
    ------
    ProjectFolderError
        The path is a folder that snnc did not write.
    ModelFormatError, NoTimeStepError
        A dialect or a time step is given for a file that is not a NIR file.
    NoTimeError
        The network has no time; the message says whether it can be converted.
    SnncError
        The file cannot be read.
    """
    file = Path(path)
    if file.is_dir():
        raise ProjectFolderError(f"{str(file)!r} is a folder without a compiled model; give a model file or a folder from snnc compile.")
    from snnc.frontends.load import is_nir, load
    from snnc.frontends.onnx.errors import NoTimeError, OnnxError

    if dt is not None or dialect is not None:
        check_discrete(repr(str(file)), dt, dialect, nir=is_nir(file))
    try:
        return load(file, dt=dt, dialect=dialect or "nir", detach=detach)
    except OnnxError:
        if not _is_relu_network(file):
            raise
    raise NoTimeError(
        f"no spiking neuron and no time step found: {file} is a ReLU network. Convert it to a spiking one on sample data: "
        "--ann2snn --calibration DATA.npz, in Python snnc.ann2snn."
    )


def check_unread_options(what: str, dt: object, dialect: str | None, detach: str | None) -> None:
    """Refuse options that only apply to model files, for the model `what`: raise an error of :func:`check_discrete`, or DetachError."""
    check_discrete(what, dt, dialect)
    if detach is None:
        return
    from snnc.frontends.onnx.errors import DetachError
    from snnc.frontends.onnx.recovery.detaching import check_rule

    check_rule(detach)
    raise DetachError(f"detach is {detach!r} (--detach), but {what} itself defines where gradients stop; leave it out.")


def check_discrete(what: str, dt: object, dialect: str | None, *, nir: bool = False) -> None:
    """Refuse `dt` and `dialect` for the model `what` unless it is a NIR file (`nir`).

    Raise OptionValueError if `dt` is not a number, NoTimeStepError if `dt` is given for another model, ModelFormatError if `dialect` is.
    """
    if dt is not None and (isinstance(dt, bool) or not isinstance(dt, Real)):
        raise OptionValueError(f"dt is {dt!r}; it must be a positive number of seconds.")
    if nir:
        return
    if dt is not None:
        raise NoTimeStepError(
            f"dt is {dt:g} s (--dt), which applies to NIR files; {what} is in discrete time, without seconds; leave it out."
        )
    if dialect is not None:
        raise ModelFormatError(f"--dialect {dialect} applies to NIR files, but {what} is not one; leave it out.")


def _is_relu_network(file: Path) -> bool:
    from snnc.frontends.ann2snn.read import recognise

    try:
        recognise(file, compare=False)
    except SnncError:
        return False
    return True


def is_project(path: str | Path) -> bool:
    """Return whether `path` is a folder written by ``snnc compile``."""
    return (Path(path) / OPTIONS_FILE).is_file()


def load_project(folder: str | Path) -> tuple[Graph, CompileOptions]:
    """Read the model and the options of a compiled project; raise ProjectFolderError if the folder is not a project, or is damaged."""
    from snnc.driver.trusting import check_data

    chosen, where = load_options(folder), Path(folder)
    check_data(where)
    with reported_damage(where):
        return SavedModel(where / "model").graph, chosen


def load_options(folder: str | Path) -> CompileOptions:
    """Read only the options of a compiled project; raise ProjectFolderError if the folder is not a project, or is damaged."""
    where = Path(folder)
    if not is_project(where):
        raise ProjectFolderError(f"{str(where)!r} is not a project of snnc; create one with: snnc compile MODEL -o {where}")
    from snnc.driver.trusting import check_data

    check_data(where, OPTIONS_FILE)
    with reported_damage(where):
        chosen = from_data(json.loads((where / OPTIONS_FILE).read_text(encoding="utf-8")))
        _check_types(chosen)
        return chosen


@contextmanager
def reported_damage(folder: Path) -> Iterator[None]:
    """Replace every exception without an error code by a ProjectFolderError, because a damaged project is the cause."""
    try:
        yield
    except SnncError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise ProjectFolderError(f"the project {str(folder)!r} is damaged ({reason}); compile the model again.") from None


def _check_types(chosen: CompileOptions) -> None:
    for name in SIZES:
        value = getattr(chosen, name)
        value = value.least if isinstance(value, Capacities) else value
        if value is not None and not (is_whole(value, 1) and value < 2**63):
            raise ValueError(f"{name} is {value!s:.60}")
    if not isinstance(chosen.target, str) or not is_whole(chosen.seed, 0):
        raise ValueError(f"the target is {chosen.target!r:.60}, the seed {chosen.seed!r:.60}")
