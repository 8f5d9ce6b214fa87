"""The executable of an emitted C++ program trains on arrays in its folder, with targets of every kind."""

import re
import shutil
import subprocess

import composed_losses
import numpy as np
import pytest

from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.reference.engine import ReferenceEngine

STEPS, BATCH = 7, 32
"""The executable trains with the batch that a session would take by default."""
TEXTS = (
    "mse_last_membrane:targets=values,lengths,classes=2",
    "mse_membrane:targets=step_values",
    "ce_membrane:targets=step_classes,classes=4",
)


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
@pytest.mark.parametrize("text", TEXTS)
def test_the_executable_trains_as_the_reference_does(tmp_path, text):
    program = composed_losses.program_of(text, steps=STEPS)
    folder = emit_cpu(program, tmp_path / "project")
    for command in (["-B", "build", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"], ["--build", "build", "--target", "train"]):
        result = subprocess.run(["cmake", *command], cwd=folder, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    ((inputs, targets),) = composed_losses.batches(program, 1, STEPS, BATCH)
    np.save(folder / "x0.npy", inputs["x0"].swapaxes(0, 1))
    np.save(folder / "labels.npy", targets.astype(np.float32))
    result = subprocess.run([folder / "build" / "train", folder, "3"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    reference = ReferenceEngine(program)
    wanted = [reference.train_batch(inputs, targets, program.optimizer.lr) for _ in range(3)]
    found = [float(loss) for loss in re.findall(r"loss ([\d.]+)", result.stdout)]
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    np.save(folder / "labels.npy", np.zeros((BATCH, 50), np.float32))
    refused = subprocess.run([folder / "build" / "train", folder], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "elements per sample" in refused.stderr
