"""Run by a test in a separate process, with a sanitizer's library preloaded: trains the projects named by FOLDER LIBRARY …"""

import sys
from pathlib import Path

import numpy as np

from snnc.backends.cpu.engine import CpuEngine
from snnc.backends.runtime.events import Events

random = np.random.default_rng(0)
arguments = [Path(text) for text in sys.argv[1:]]
for folder, library in zip(arguments[::2], arguments[1::2], strict=True):
    engine = CpuEngine(library, folder, threads=2)
    sizes = {info["tensor"]: engine.session.tensors[info["tensor"]].shape[2] for info in engine.description["inputs"]}
    for steps, batch in ((7, 5), (3, 1)):
        inputs = {name: (random.random((steps, batch, n)) < 0.4).astype(np.float32) for name, n in sizes.items()}
        engine.forward(inputs, {})
        engine.train_batch(inputs, random.integers(0, 4, batch), 1e-2)
        engine.gradients()
        engine.segment = 2
        engine.train_batch(inputs, random.integers(0, 4, batch), 1e-2)
        engine.forward({name: Events.from_dense(x) for name, x in inputs.items()}, {})
        engine.segment = None
    engine.reset(2, {})
    for _ in range(3):
        engine.step({name: np.ones((2, n), np.float32) for name, n in sizes.items()})
    engine.session.save(folder / "trained.safetensors")
    engine.close()
print(f"trained {len(arguments) // 2} networks")
