"""What a user does: any model -> a session, in memory or through a project's folder."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Unpack

import numpy.typing as npt

from snnc.backends.folders.project import atomic_folder
from snnc.backends.registry import DEFAULT
from snnc.compiler.files.temporary import HeldFolder
from snnc.compiler.ir.graph import Graph, Input, Kind
from snnc.driver.folder import read_project
from snnc.driver.learnable import with_learnable
from snnc.driver.loading import Model, as_graph, load_project
from snnc.driver.measuring import Data
from snnc.driver.stages import emit_project, open_engine, planned
from snnc.driver.trusting import vouch
from snnc.errors import OptionConflictError
from snnc.options.compile_options import Options, options
from snnc.options.keywords import CompileKeywords, check_keywords, with_keywords
from snnc.project.compiled import Compiled
from snnc.project.known_projects import remember
from snnc.project.releasing import released
from snnc.project.trained import load_trained, read_trained
from snnc.session import Session, with_input_name

MOST_SAMPLES: Final = 64
"""Default number of samples in one run of a machine."""


@with_keywords(CompileKeywords, Options)
def compile(
    model: Model,
    target: str = DEFAULT,
    *,
    output: str | Path | None = None,
    dt: float | None = None,
    input_kind: Kind | None = None,
    overwrite: bool = False,
    detach: str | None = None,
    **given: Unpack[CompileKeywords],
) -> Session:
    """Compile a network for a target.

    Parameters
    ----------
    model
        A :class:`~snnc.frontends.dsl.network.Network`, a graph, an ``.onnx`` file or a folder that snnc wrote.
    target
        ``"cpu"`` (a C++ program for this processor), ``"cuda"`` (a CUDA program for a GPU), ``"reference"`` (NumPy), a machine such
        as ``"gc200"``, or the path of a TOML file that describes one. ``"poptorch"`` or ``"poptorch:MACHINE"``: a package for PopTorch,
        whose session runs forward on the emulator.
    steps
        Time steps of a sequence; where the model fixes another number, this one is taken.
    batch
        Samples of one run or training step.
    loss, optimizer, surrogate
        Objects, or their names as on the command line; with a loss the network can be trained (by Adam, unless said).
    seed
        Seed of everything random.
    capacity
        Spikes a sample that one window moves; by default from the activity.
    mode
        ``"exact"`` sends what is more in further windows, ``"drop"`` drops it.
    calibrate
        Inputs in the layout of the model, to measure how often neurons fire.
    output
        Folder for the project; by default one that is deleted with the session.
    dt
        Seconds a step, for models in continuous time.
    input_kind
        ``"spikes"`` or ``"values"``: what the inputs hold, where the model does not say.
    gradient_window
        Restrict every surrogate derivative to ``low < x < high`` (x: membrane minus threshold); one number is `low`. Neurons outside
        take no gradient, so machines move less; the gradient is another one, see the page on the gradient window.
    recompute
        ``"auto"``: where a training step finds no room for the states of all steps, only those of a segment are kept, and the others run
        forward again before they run backward; ``"off"``: never; a number: always, with this many iterations in a segment. Results are
        equal.
    streaming
        What a training step that finds no room otherwise may store outside the tiles: ``"off"``, nothing; ``"inputs"``: the host sends
        inputs segment after segment; ``"boundaries"``: and the first states of segments are in streaming memory; ``"history"``: so are all
        states of segments, which then need not run again; ``"auto"``: what is needed, and fastest. Results are equal.
    parts
        Parts that populations with sparse connections are cut into, 1 for none; by default as many as make the predicted step fastest.
    memory
        On the processor and on a GPU: bytes that a training step may take, such as ``"500M"``. Where the states of all steps are more,
        those between two checkpoints are kept, and steps run again before they run backward. Gradients are equal, on a GPU up to the order
        of sums; on the processor the longest segments that fit are taken, and shortened once sequences list more than before. A bound that
        no segment keeps is refused before the first update. Runs take fewer samples at once.
    threads
        On the processor: how many; by default ``SNNC_THREADS``, ``OMP_NUM_THREADS`` or all.
    truncate
        Not on tiles: truncated backpropagation through time. What steps that are a multiple of this number carry
        over from the step before counts as a constant, as after PyTorch's ``detach``; the loss still reads every step.
    precision
        On the processor: ``"bfloat16"`` reads dense weights as bfloat16, multiplies spikes with them exactly, and rounds what dense
        products and the past take. On a GPU: ``"bfloat16"`` rounds deltas, and the factors of dense backward products, which then run on
        tensor cores; ``"float16"`` those of forward products too, which moves spikes, and what the backward pass reads of the past. On
        machines, in PopTorch's package and on the reference: ``"float16"`` keeps what the backward pass reads of the past as half numbers.
        Sums, states and what the optimiser changes are float32.
    loss_output
        The output, the population or the ``"population.port"`` that the loss reads; by default the one that fits it.
    overwrite
        Whether the trained weights of an older project in `output` are deleted; by default they are put aside, see the page on projects.
    learnable
        Parameters of neurons that training changes in addition to those of the model: ``"beta,threshold"`` of all populations that have
        them, ``["hidden.beta"]`` of one. A file does not say what was learned, so of imported neurons nothing is, unless it is named.

    An option that has no effect on the target, or none without a loss, is refused: docs/reference/options.md lists which target takes what.

    detach
        For model files: where gradients stop inside neurons, ``"reset"``, ``"none"`` or ``"all"``; see :func:`snnc.load`.

    Raises
    ------
    SnncError
        With a code, see the page on errors.

    Examples
    --------
    >>> import numpy as np, snnc
    >>> net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    >>> with snnc.compile(net) as session:
    ...     session.run(np.ones((5, 1, 4)))["output"].shape
    (5, 1, 2)
    """
    check_keywords(given, CompileKeywords)
    chosen, calibrate, learnable = options(target, **given), given.get("calibrate"), given.get("learnable")
    graph = with_learnable(as_graph(model, dt=dt, input_kind=input_kind, steps=given.get("steps"), detach=detach), learnable)
    if output is None and overwrite:
        raise OptionConflictError("overwrite is for a folder that is replaced; give output, or leave it out.")
    if output is None:
        return open_graph(graph, chosen, calibrate)
    compile_to_folder(graph, chosen, Path(output), calibrate, overwrite=overwrite)
    return open(output)


def open(folder: str | Path, *, trust: bool = False) -> Session:
    """Open a compiled project, with the weights of its last training; where these cannot be used, a warning says so.

    Parameters
    ----------
    folder
        What :func:`compile` or ``snnc compile`` wrote. Its C++ is compiled and executed, except for the target ``reference``.
    trust
        Whether that is allowed for a project that somebody else compiled, whose sources were changed, or that others can change.

    Raises
    ------
    ProjectFolderError, DamagedProjectError
        The folder is not a project, or is damaged.
    UnsafeProjectError, ChangedSourcesError, UntrustedProjectError
        Its program is not this user's, and not trusted.
    """
    return _opened(Path(folder), lenient=True, trust=trust)


def open_strictly(folder: str | Path, *, trust: bool = False) -> Session:
    """Open a compiled project as :func:`open` does, but refuse trained weights that cannot be used.

    Raises
    ------
    ProjectFolderError
        The folder is not a project, or is damaged.
    TrainedWeightsError
        Its trained weights cannot be used.
    """
    return _opened(Path(folder), lenient=False, trust=trust)


def _opened(where: Path, lenient: bool, trust: bool) -> Session:
    compiled = read_project(where)
    if compiled.options.backend.emits:
        vouch(where, trust)
    session = Session(open_engine(compiled, where), released(compiled, where), where)
    try:
        load_trained(session, where, lenient)
    except BaseException:
        session.close()
        raise
    return session


def open_graph(graph: Graph, chosen: Options, calibrate: Data | None = None) -> Session:
    """Compile `graph` and open it, in a temporary folder where it needs one."""
    compiled = planned(graph, chosen, calibrate)
    if not chosen.backend.emits:
        return Session(open_engine(compiled, None), compiled)
    held = HeldFolder()
    try:
        folder = held.path / "project"
        emit_project(compiled, folder)
        compiled = released(compiled, folder)
        return Session(open_engine(compiled, folder), compiled, folder, on_close=held.close)
    except BaseException:
        held.close()
        raise


def compile_to_folder(graph: Graph, chosen: Options, folder: Path, data: Path | Data | None = None, *, overwrite: bool = False) -> Compiled:
    """Compile `graph` and write its project, whole or not at all; `data` is for the activity, `overwrite` as :func:`compile` takes it."""
    compiled = planned(graph, chosen, data)
    with atomic_folder(folder, keep_trained=not overwrite) as beside:
        emit_project(compiled, beside)
    remember(folder)
    return compiled


def session_for(
    model: Path | Graph,
    arrays: Mapping[str, npt.NDArray[Any]],
    *,
    target: str | None = None,
    seed: int = 0,
    trust: bool = False,
) -> Session:
    """Open a graph or project to run `arrays`; a machine is compiled for their number of samples and steps; `trust` as for :func:`open`."""
    if isinstance(model, Path):
        graph, chosen = load_project(model)
        if target in (None, chosen.target):
            return open_strictly(model, trust=trust)
        graph = read_trained(graph, model)
    else:
        graph, chosen = model, Options()
    steps, batch = _sizes(graph, with_input_name(arrays, [name for name, _ in graph.of_type(Input)]))
    wanted = replace(chosen.retargeted(target or DEFAULT), seed=seed, batch=min(batch, MOST_SAMPLES))
    if wanted.mode != chosen.mode:
        warnings.warn(
            f"the project's windows drop spikes beyond their capacity (mode 'drop'); on {wanted.target!r} all are sent, so "
            "numbers may differ.",
            UserWarning,
            stacklevel=2,
        )
    if wanted.backend.has_tiles:
        wanted = replace(wanted, steps=graph.steps or steps)
    return open_graph(graph, wanted)


def _sizes(graph: Graph, arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[int | None, int]:
    """Steps and samples that `arrays` hold."""
    steps, batch = None, 1
    for name, operation in graph.of_type(Input):
        array, layout = arrays.get(name), operation.layout
        if array is None:
            continue
        if layout.time_axis is not None and layout.time_axis < array.ndim:
            steps = array.shape[layout.time_axis]
        if layout.batch_axis is not None and layout.batch_axis < array.ndim:
            batch = max(1, array.shape[layout.batch_axis])
    return steps, batch
