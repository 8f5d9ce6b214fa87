"""Engine that runs the forward pass of a package's custom operation on the emulator; training is left to PyTorch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from snnc.backends.poplar.machine import VERSION
from snnc.backends.poptorch.errors import UnsupportedOnPopTorchError
from snnc.backends.poptorch.operation import PopartOperation
from snnc.backends.poptorch.popart import load_operation, open_operation
from snnc.backends.runtime.engine import Array, Initial
from snnc.backends.runtime.errors import NotTrainableError, SpikeLimitError
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.spike_limits import LOWEST, is_limit_value, limits_of, sent, without_limits


class PopTorchEngine:
    """Runs the operation of a package with the methods of :class:`snnc.backends.runtime.engine.Engine`.

    `folder` is the package, and `library` the shared library of its custom operation; both come from `program` and `plan`.
    """

    def __init__(self, program: StepProgram, plan: Plan, folder: Path, library: Path) -> None:
        self._limits, self._dropped = limits_of(program), 0  # limits: by source buffer, its capacity and choice key (spike_limits.py)
        self._operation = PopartOperation(without_limits(program), plan, self._limits)
        self._folder = folder
        self._values = {name: np.array(value, dtype=np.float32) for name, value in self._operation.values.items()}
        load_operation(library)
        description: dict[str, Any] = json.loads((folder / "network.json").read_text(encoding="utf-8"))
        shapes = [i.shape for i in self._operation.operation_inputs]
        target = plan.target
        self._running = open_operation(
            description["domain"],
            description["operation"],
            1,
            {"folder": str(folder.resolve())},
            shapes,
            machine=target.device or VERSION,
            tiles=target.tiles_per_chip,
            ipus=target.chips,
        )

    @property
    def steps(self) -> int:
        return self._operation.plan.steps

    @property
    def batch(self) -> int:
        return self._operation.plan.batch

    def forward(self, inputs: Mapping[str, Array], initial: Initial) -> dict[str, Array]:
        """See :class:`~snnc.backends.runtime.engine.Engine`; `initial` must be empty, because all samples start with the same states."""
        if initial:
            raise UnsupportedOnPopTorchError(
                "the custom operation starts every sample with the same states; omit initial states, or use a different target."
            )
        operation = self._operation
        sent_inputs = {i.id: self._sent(i.id, inputs[i.id]) for i in operation.inputs}
        # The operation's axes are [samples, steps, …], those of engines [steps, samples, …].
        values = {i.id: sent_inputs[i.id][0] if i.static else np.swapaxes(sent_inputs[i.id], 0, 1) for i in operation.inputs} | self._values
        results = self._running.run([values[i.name] for i in operation.operation_inputs])
        records = {o.id: np.swapaxes(result, 0, 1) for o, result in zip(operation.outputs, results, strict=False)}
        # The results after the outputs are counts of dropped spikes: 32-bit integers in tensors of type float.
        self._dropped += sum(int(counts.view(np.uint32).sum()) for counts in results[len(operation.outputs) :])
        outputs = operation.visible_outputs
        return {o.id: records[o.id] if o.id in records else self._delayed(inputs, o.source.buffer, o.source.delay) for o in outputs}

    def train_batch(self, inputs: Mapping[str, Array], target: Array, learning_rate: float) -> float:
        script = self._folder / "train.py"
        raise NotTrainableError(
            f"a package for PopTorch is trained by PyTorch; run {script} on a machine with PopTorch, or on the emulator: "
            f"python -m snnc.emulated_poptorch {script}"
        )

    def get_parameters(self) -> dict[str, Array]:
        parameters = self._operation.program.parameters
        return {name: self._values[name].reshape(p.value.shape).copy() for name, p in parameters.items()}

    def set_parameters(self, values: Mapping[str, Array]) -> None:
        for buffer, (capacity, key) in self._limits.items():
            self._limits[buffer] = float(values.get(f"{buffer}_capacity", capacity)), float(values.get(f"{buffer}_choice", key))
            if f"{buffer}_limit" in self._values:
                self._values[f"{buffer}_limit"] = np.array(self._limits[buffer], dtype=np.float32)
        for name, value in values.items():
            if is_limit_value(name):
                continue
            self._values[name] = np.array(value, dtype=np.float32).reshape(self._values[name].shape)

    def counters(self) -> dict[str, int]:
        """Return the number of dropped spikes; a spike with several readers is counted once."""
        return {"dropped_spikes": self._dropped}

    def close(self) -> None:
        self._running.close()

    def _sent(self, name: str, array: Array) -> Array:
        if f"{name}_in" not in self._limits:
            return array
        capacity, key = self._limits[f"{name}_in"]
        if key != LOWEST and next(i for i in self._operation.inputs if i.id == name).static:
            raise SpikeLimitError(
                f"the input {name!r} is the same at every step; a package gets it only once, but a random choice differs each "
                "time. Use drop='lowest', or compile for the machine itself."
            )
        rows = [sent(row, int(capacity), key, t) for t, row in enumerate(np.asarray(array).reshape(self.steps, self.batch, -1))]
        sent_array = np.stack(rows).reshape(np.shape(array))
        self._dropped += int(np.count_nonzero(array) - np.count_nonzero(sent_array))
        return sent_array

    def _delayed(self, inputs: Mapping[str, Array], buffer: str, delay: int) -> Array:
        """Return the record of an input, delayed by `delay` steps, for an output that reads the input directly."""
        array = next(inputs[i.id] for i in self._operation.program.inputs if buffer == f"{i.id}_in")
        delayed = np.zeros_like(array)
        delayed[delay:] = array[: self.steps - delay]
        return delayed
