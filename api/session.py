"""The session returned by :func:`snnc.compile`: a backend session that also has the graph, the options and the plan."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from snnc.backends import session
from snnc.backends.folders.manifest import PROFILE, RECORDING
from snnc.backends.runtime.engine import Engine, Initial, TimingEngine, profile_of
from snnc.backends.runtime.events import InputValues, densely
from snnc.backends.runtime.history import History
from snnc.backends.runtime.inputs import BatchedData
from snnc.backends.session import Input
from snnc.backends.training.validation.validating import SpikeCounter
from snnc.compiler.ir.arrays.array_parts import arrays_with_parts
from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.graph_text import graph_html, graph_text, plain
from snnc.compiler.ir.plan import Plan
from snnc.data.archive import RenamedArrays
from snnc.data.whole_files import write_bytes
from snnc.errors import FilledBufferError, NoKernelsError, OptionConflictError, OutputFileError, RecordingError
from snnc.options.compile_options import CompileOptions
from snnc.project.compiled import Compiled

if TYPE_CHECKING:
    from snnc.report.recording import Recording


class Session(session.BackendSession):
    """A compiled network that runs, trains and reports.

    Attributes
    ----------
    graph, options, plan
        The compiled graph, its options, and the plan (None without tiles).
    project
        The project folder, if there is one.
    recording
        Spikes of the last :meth:`record`.
    timing
        Timing of the last training run on arrays or a data set, for sessions without a plan.
    """

    def __init__(self, engine: Engine, compiled: Compiled, project: Path | None = None, on_close: Callable[[], None] | None = None) -> None:
        super().__init__(engine, compiled.program)
        self.graph: Graph = compiled.graph
        self.options: CompileOptions = compiled.options
        self._limits.seed = compiled.options.seed  # selects the spikes that exceed the capacities and are dropped
        self.plan: Plan | None = compiled.plan
        self.project = project
        self.recording: Recording | None = None
        self.timing: dict[str, Any] | None = None
        self._compiled = compiled
        self._on_close = on_close

    def _batch_of_fit(self, x: object, y: object, batch: int | None) -> int | None:
        """Return `batch`; if None, the compiled batch size, unless the engine or `x` (an iterable of batches, without `y`) sets it."""
        determined = batch is not None or self.engine.batch is not None or (y is None and not isinstance(x, BatchedData))
        return batch if determined else self.options.batch

    def _seed_of_fit(self, seed: int | None, shuffle: bool) -> int:
        if seed is not None and not shuffle:
            raise OptionConflictError(f"seed is {seed}, which orders the samples, but shuffle is False; leave one of them out.")
        return self.options.seed if seed is None else seed

    def _after_fit(self, history: History, samples: int) -> None:
        if self.plan is None and samples:
            from snnc.report.program import timing_of

            self.timing = timing_of(history, samples)

    def show(self) -> None:
        """Print the report of the plan, or of the program if the target has no tiles."""
        print(self.report_text("text"), end="")

    def report(self, path: str | Path, format: str | None = None) -> Path:
        """Write the report of the plan, or of the program if the target has no tiles.

        Parameters
        ----------
        path
            The file to write.
        format
            One of ``snnc.report.FORMATS``, such as ``"html"``, ``"text"`` or ``"png"`` (without tiles ``"html"``, ``"text"`` or
            ``"json"``); by default the suffix of `path`.
        """
        from snnc.report import format_of

        file = Path(path)
        write_bytes(file, self._report(format or format_of(file)))
        return file

    def report_text(self, format: str) -> str:
        """Return the report in a text format."""
        return self._report(format).decode("utf-8")

    def _report(self, format: str) -> bytes:
        if self.plan is None:
            return self._program_report(format)
        from snnc.report import subject_of, write

        return write(subject_of(self._compiled, self.profile(), self.recording), format)

    def _program_report(self, format: str) -> bytes:
        from snnc.report.program import ProgramReport, write_program

        project = None
        if self.project is not None and (self.project / "project.json").is_file():
            project = json.loads((self.project / "project.json").read_text(encoding="utf-8"))
        return write_program(ProgramReport(self.graph, self.options, self.program, project, self.recording, self._times()), format)

    def record(
        self, inputs: Mapping[str, Input] | Input, initial: Mapping[str, npt.ArrayLike] | None = None, samples: int = 1
    ) -> Recording:
        """Record the spikes of the first samples for reports, in the session and in the project folder, if there is one.

        The NumPy reference computes them from the session's weights; targets that compute in float32 agree with it up to rounding.

        Parameters
        ----------
        inputs, initial
            As in :meth:`run`.
        samples
            Number of samples.

        Raises
        ------
        RecordingError
            `samples` is below 1, or there are too many spikes for a recording.
        """
        return self._record(*self.prepared(inputs, initial), samples)

    def spike_counter(self) -> SpikeCounter:
        """See :meth:`snnc.backends.session.BackendSession.spike_counter`; the NumPy reference runs the samples."""

        def counted(inputs: Mapping[str, npt.NDArray[Any]]) -> dict[str, float]:
            from snnc.report.recording import record

            recording = record(self.program, self.engine.get_parameters(), inputs, {})
            return {train.label: len(train.ids) / recording.samples for train in recording.trains}

        return counted

    def record_samples(self, x: Mapping[str, Input] | Input | BatchedData, samples: int = 1) -> Recording:
        """Like :meth:`record`, for the samples or data set of a :meth:`fit`."""
        if isinstance(x, BatchedData):
            first, _ = next(iter(x.batches(max(1, samples), order=np.arange(min(max(1, samples), len(x))))))
            return self._record(self.inputs.batch(first), {}, samples)
        data = self.inputs.samples(x)
        few = min(samples, len(next(iter(data.values()))))
        return self._record(self.inputs.batch_of(data, np.arange(few)), {}, samples)

    def _record(self, sequences: Mapping[str, InputValues], start: Initial, samples: int) -> Recording:
        if samples < 1:
            raise RecordingError(f"samples is {samples}; record at least 1 sample.")
        from snnc.report.recording import record, write_recording

        few = {id_: array[:, :samples] for id_, array in densely(sequences).items()}
        self.recording = record(self.program, self.engine.get_parameters(), few, {key: array[:samples] for key, array in start.items()})
        if self.project is not None:
            write_recording(self.project / RECORDING, self.recording)
        return self.recording

    def profile(self) -> dict[str, Any] | None:
        """Return the emulator's counts for each superstep; None without the emulator."""
        counts: dict[str, Any] = profile_of(self.engine).get("emulator") or {}
        if "steps" not in counts:
            return None
        from snnc.report.profile import slim

        return slim(counts)

    def cycles(self) -> dict[str, float] | None:
        """Return the cycles of the last run, counted by the emulator and predicted; None if the emulator counted nothing.

        The prediction is for the activity of the plan: measured on ``calibrate``, or assumed.
        """
        profile = self.profile()
        if self.plan is None or profile is None or not profile["cycles_last_run"]:
            return None
        return {"counted": profile["cycles_last_run"], "predicted": self.plan.cycles}

    def keep(self) -> None:
        """Store the emulator's profile or, without a plan, the measured time of a training step in the project folder, for reports."""
        profile = self.profile() if self.plan is not None else self._times()
        if self.project is not None and profile is not None:
            try:
                write_bytes(self.project / PROFILE, json.dumps(profile).encode())
            except OutputFileError as error:
                warnings.warn(f"the profile of this run is not stored: {error.text}", stacklevel=2)

    def time_kernels(self) -> None:
        """Time each kernel of the training steps from now on, for the report of the project (:meth:`keep`); steps take longer meanwhile.

        Raise NoKernelsError if the target has no kernels.
        """
        if not isinstance(self.engine, TimingEngine):
            raise NoKernelsError(
                f"the target {self.options.target!r} has no kernels to time; only programs for GPUs (target cuda) have. "
                "Train without timing kernels."
            )
        self.engine.time_kernels()

    def _times(self) -> dict[str, Any] | None:
        kernels = self.engine.kernel_times() if isinstance(self.engine, TimingEngine) else None
        return self.timing if self.timing is None or kernels is None else {**self.timing, "kernels": kernels}

    def close(self) -> None:
        """Release the engine, and delete a temporary project folder."""
        super().close()
        if self._on_close is not None:
            self._on_close()
            self._on_close = None

    def __repr__(self) -> str:
        head, _, layers = graph_text(self.graph, "Session").partition("\n")
        return "\n".join([head, f"  {self._how()}", *([layers] if layers else [])])

    def _repr_html_(self) -> str:
        return f"<div>{escape(self._how())}</div>{graph_html(self.graph, 'Session')}"

    def _how(self) -> str:
        """Describe target, sizes and training: ``target gc200, 100 steps, batch 64, trains by Adam``."""
        chosen = self.options
        steps = self.program.steps or self.engine.steps
        batch = self.engine.batch or chosen.batch
        trains = "" if chosen.loss is None else f", trains {type(chosen.loss).__name__} by {type(self.program.optimizer).__name__}"
        return (
            f"target {plain(chosen.target)}, {'any number of' if steps is None else format(steps, ',')} steps, "
            f"batch {'any' if batch is None else format(batch, ',')}{trains}{', closed' if self._closed else ''}"
        )


def arrays_for(
    session: Session, arrays: Mapping[str, npt.NDArray[Any]]
) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, npt.NDArray[Any]]]:
    """Split named arrays into inputs and initial states, renaming ``x`` as in :func:`with_input_name`.

    An array is read when it is used, except arrays for idle inputs that must be 0: raise FilledBufferError if one of them is not.
    """
    state_inputs, idle = session.program.state_inputs, session.graph.idle_inputs
    filled = sorted(name for name in idle if idle[name] == "zeros" and name in arrays and np.any(arrays[name]))
    if filled:
        raise FilledBufferError(
            f"the array {filled[0]!r} contains values other than 0, but this buffer starts with zeros; leave it out, or export the past "
            "values as separate states."
        )
    arrays = RenamedArrays(arrays, {name: name for name in arrays if name not in idle})
    states = {*state_inputs, *arrays_with_parts(state_inputs)}  # an array "state" may replace the parts "state[0]", "state[1]"
    arrays = with_input_name(arrays, [i.label for i in session.program.inputs])
    inputs, initial = ({name: name for name in arrays if (name in states) is is_state} for is_state in (False, True))
    return RenamedArrays(arrays, inputs), RenamedArrays(arrays, initial)


def with_input_name(arrays: Mapping[str, npt.NDArray[Any]], inputs: Sequence[str]) -> Mapping[str, npt.NDArray[Any]]:
    """Rename the array ``x`` to the name of the only input, unless there is an array of that name."""
    if len(inputs) == 1 and "x" in arrays and inputs[0] not in arrays:
        return RenamedArrays(arrays, {inputs[0] if name == "x" else name: name for name in arrays})
    return arrays
