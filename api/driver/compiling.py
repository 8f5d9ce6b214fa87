"""Compile any model into a session, in memory or through a project folder."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Unpack

import numpy.typing as npt

from snnc.backends.folders.project import atomic_folder
from snnc.backends.registry import DEFAULT
from snnc.compiler.files.temporary import TemporaryFolder
from snnc.compiler.ir.graph import Graph, Input, Kind
from snnc.driver.folder import read_project
from snnc.driver.learnable import with_learnable
from snnc.driver.loading import Model, as_graph, load_project
from snnc.driver.measuring import Data
from snnc.driver.stages import emit_project, open_engine, planned
from snnc.driver.trusting import check_trusted
from snnc.errors import OptionConflictError
from snnc.options.compile_options import CompileOptions, options
from snnc.options.keywords import CompileKeywords, check_keywords, with_keywords
from snnc.project.compiled import Compiled
from snnc.project.known_projects import remember
from snnc.project.releasing import released
from snnc.project.trained import load_trained, read_trained
from snnc.session import Session, with_input_name

MAX_SAMPLES: Final = 64
"""Maximum batch size with which a network is compiled only to run or verify given arrays."""


@with_keywords(CompileKeywords, CompileOptions)
def compile(
    model: Model,
    target: str = DEFAULT,
    *,
    output: str | Path | None = None,
    dt: float | None = None,
    input_kind: Kind | None = None,
    overwrite: bool = False,
    detach: str | None = None,
    **keywords: Unpack[CompileKeywords],
) -> Session:
    """Compile a network for a target.

    An option that would have no effect raises an error: the target does not use it, or it only affects training and there is no loss.
    docs/reference/options.md lists the options per target.

    Parameters
    ----------
    model
        A :class:`~snnc.frontends.dsl.network.Network`, a graph, a model file (ONNX or NIR), or a folder written by snnc.
    target
        ``"cpu"`` (a C++ program for this processor), ``"cuda"`` (a CUDA program for a GPU), ``"reference"`` (NumPy), a machine such
        as ``"gc200"``, or the path of a TOML file that describes one. ``"poptorch"`` or ``"poptorch:MACHINE"``: a package for PopTorch,
        whose session runs forward passes on the emulator.
    steps
        Number of time steps of a sequence; by default the number that the model defines, if any.
    batch
        Number of samples in one run or training step.
    loss, optimizer, surrogate
        Objects, or their names as on the command line. With a loss the network can be trained, by default with Adam.
    seed
        Seed for all random numbers.
    capacity
        Maximum number of events of a source in one window (one transfer between tiles), for one sample and step; by default derived from
        the activity. In mode ``"drop"`` also the maximum number of events that the source sends in a step. Targets without tiles accept
        it only in this mode.
    mode
        ``"exact"`` sends events beyond the capacity in further windows, ``"drop"`` drops them.
    drop
        In mode ``"drop"``, which spikes are kept: those with the ``"lowest"`` ids, or ``"random"`` ones.
    calibrate
        Inputs in the layout of the model, to measure the activity of the neurons.
    output
        Folder for the project; by default a temporary one, deleted with the session.
    dt
        Seconds per step, for models in continuous time.
    input_kind
        ``"spikes"`` or ``"values"``: the kind of the inputs, if the model does not define it.
    gradient_window
        ``(low, high)``, or `low` alone. Restrict every surrogate derivative to ``low < x < high`` (x: membrane potential minus threshold).
        Neurons outside receive no gradient, so machines move less data. This changes the gradient, see the page on the gradient window.
    recompute
        On tiles: whether a sequence is divided into such segments as for `memory`. ``"auto"``: if the states of all steps do not fit;
        ``"off"``: never; a number: always, with this many iterations per segment. Results do not change.
    streaming
        Data that a training step may store outside the tiles if it does not fit otherwise. ``"off"``: none; ``"inputs"``: the host sends
        inputs segment by segment; ``"boundaries"``: streaming memory also stores the first states of segments; ``"history"``: it stores
        all states, so segments do not run again; ``"auto"``: the fastest of these, if one is needed. Results do not change.
    parts
        Number of parts into which populations with sparse connections are split, 1 for none; by default the number with the fastest
        predicted step.
    memory
        On the CPU and on a GPU: memory limit of a training step, such as ``"500M"``. If the states of all steps exceed it, the sequence is
        divided into the longest segments that fit: only the states of one segment are stored, and segments run forward again before they
        run backward. Gradients are equal, on a GPU up to the order of sums. Runs without training process fewer samples at once.
    threads
        On the CPU: number of threads; by default ``SNNC_THREADS``, ``OMP_NUM_THREADS`` or all cores.
    truncate
        Not on tiles: truncated backpropagation through time. At every step that is a multiple of this number, the states carried over
        from the previous step count as constants; the loss still reads every step.
    input_gradients
        In a package for PopTorch: whether gradients flow to inputs that require them, so that layers before the network learn.
    precision
        ``"float32"``, ``"tf32"``, ``"bfloat16"`` or ``"float16"``: the precision of the values that the target rounds; the page on half
        precision lists them. Sums, states and updated parameters are float32. On a GPU, ``"tf32"`` rounds dense weights outside
        recurrences to 11 bits, and ``"float16"`` changes spikes.
    half
        The values that ``precision="float16"`` rounds to half precision: one or more of ``weights``, ``history`` (stored past steps),
        ``deltas`` and ``states`` (which changes spikes), as in ``"weights:stochastic,history"``, or a :class:`~snnc.HalfNumbers`. A
        dictionary, or text with semicolons, chooses by name of the population or connection: ``{"*": "weights", "readout": "float32"}``.
    loss_output
        The output, population or ``"population.port"`` that the loss reads; by default the one that fits it.
    overwrite
        Whether to delete the trained weights of an older project in `output`; by default they are moved to ``before-1/``, see the page on
        projects.
    learnable
        Neuron parameters to train in addition to those that the model declares: ``"beta,threshold"`` for all populations that have
        them, ``["hidden.beta"]`` for one. Model files do not say which parameters were learned, so parameters of imported neurons are
        trained only if they are named here.
    detach
        For model files: where gradients stop inside neurons, ``"reset"``, ``"none"`` or ``"all"``; see :func:`snnc.load`.

    Raises
    ------
    SnncError
        The error code is explained on the page on errors.

    Examples
    --------
    >>> import numpy as np, snnc
    >>> net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    >>> with snnc.compile(net) as session:
    ...     session.run(np.ones((5, 1, 4)))["output"].shape
    (5, 1, 2)
    """
    check_keywords(keywords, CompileKeywords)
    chosen, calibrate, learnable = options(target, **keywords), keywords.get("calibrate"), keywords.get("learnable")
    graph = with_learnable(as_graph(model, dt=dt, input_kind=input_kind, steps=keywords.get("steps"), detach=detach), learnable)
    if output is None and overwrite:
        raise OptionConflictError("overwrite is given, but there is no output folder to replace; give output, or leave overwrite out.")
    if output is None:
        return open_graph(graph, chosen, calibrate)
    compile_to_folder(graph, chosen, Path(output), calibrate, overwrite=overwrite)
    return open(output)


def open(folder: str | Path, *, trust: bool = False) -> Session:
    """Open a compiled project with its trained weights, if it was trained; if they cannot be used, warn and use the compiled weights.

    Parameters
    ----------
    folder
        A folder written by :func:`compile` or ``snnc compile``. Its C++ is compiled and executed, except for the target ``reference``.
    trust
        Whether to compile and execute it even if somebody else compiled the project, its sources were changed, or others can change them.

    Raises
    ------
    ProjectFolderError, DamagedProjectError
        The folder is not a project, or is damaged.
    UnsafeProjectError, ChangedSourcesError, UntrustedProjectError
        Others can change the project, its sources were changed, or somebody else compiled it, and `trust` is false.
    """
    return open_project(Path(folder), trust, lenient=True)


def open_project(where: Path, trust: bool, *, lenient: bool = False) -> Session:
    """Open a compiled project like :func:`open`; unless `lenient`, raise TrainedWeightsError if its trained weights cannot be used."""
    compiled = read_project(where)
    if compiled.options.backend.emits:
        check_trusted(where, trust)
    session = Session(open_engine(compiled, where), released(compiled, where), where)
    try:
        load_trained(session, where, lenient)
    except BaseException:
        session.close()
        raise
    return session


def open_graph(graph: Graph, chosen: CompileOptions, calibrate: Data | None = None) -> Session:
    """Compile `graph` and open it, in a temporary folder if the target emits files."""
    compiled = planned(graph, chosen, calibrate)
    if not chosen.backend.emits:
        return Session(open_engine(compiled, None), compiled)
    temporary = TemporaryFolder()
    try:
        folder = temporary.path / "project"
        emit_project(compiled, folder)
        compiled = released(compiled, folder)
        return Session(open_engine(compiled, folder), compiled, folder, on_close=temporary.close)
    except BaseException:
        temporary.close()
        raise


def compile_to_folder(
    graph: Graph, chosen: CompileOptions, folder: Path, data: Path | Data | None = None, *, overwrite: bool = False
) -> Compiled:
    """Compile `graph` and write its project, completely or not at all; `data` and `overwrite` are as in :func:`compile`."""
    compiled = planned(graph, chosen, data)
    with atomic_folder(folder, keep_trained=not overwrite) as beside:
        emit_project(compiled, beside)
    remember(folder)
    return compiled


def session_for(
    model: Path | Graph, arrays: Mapping[str, npt.NDArray[Any]], *, target: str | None = None, seed: int = 0, trust: bool = False
) -> Session:
    """Open a session that can run `arrays`, inputs by name; for `trust` see :func:`open`.

    A compiled project opens unchanged if `target` is None or the project's target. Otherwise the model is compiled for `target` and for the
    sizes of `arrays`, but for at most ``MAX_SAMPLES`` samples.
    """
    if isinstance(model, Path):
        graph, chosen = load_project(model)
        if target in (None, chosen.target):
            return open_project(model, trust)
        graph = read_trained(graph, model)
    else:
        graph, chosen = model, CompileOptions()
    steps, batch = array_sizes(graph, with_input_name(arrays, [name for name, _ in graph.of_type(Input)]))
    retargeted = replace(chosen.retargeted(target or DEFAULT), seed=seed, batch=min(batch, MAX_SAMPLES))
    if retargeted.mode != chosen.mode:
        warnings.warn(
            f"the project's windows drop spikes beyond their capacity (mode 'drop'), but on {retargeted.target!r} all spikes are sent, so "
            "results may differ.",
            stacklevel=2,
        )
    if chosen.backend.rounds_products(chosen.for_backend()):
        warnings.warn(
            f"the project's program on {chosen.target!r} rounds factors of products (precision {chosen.precision!r}), but on "
            f"{retargeted.target!r} they are float32, so results may differ.",
            stacklevel=2,
        )
    if retargeted.backend.has_tiles:
        retargeted = replace(retargeted, steps=graph.steps or steps)
    return open_graph(graph, retargeted)


def array_sizes(graph: Graph, arrays: Mapping[str, npt.NDArray[Any]]) -> tuple[int | None, int]:
    """Return the number of steps (None without a time axis) and of samples of `arrays`, which have the layouts of the graph's inputs."""
    steps, batch = None, 1
    for name, operation in graph.of_type(Input):
        array, layout = arrays.get(name), operation.layout
        if array is None:
            continue
        if layout.time_axis is not None and layout.time_axis < array.ndim:
            steps = array.shape[layout.time_axis]
        if layout.batch_axis is not None and layout.batch_axis < array.ndim:
            batch = max(batch, array.shape[layout.batch_axis])
    return steps, batch
