"""Run by a test in a separate process with a sanitizer's library preloaded: FLAGS FOLDER …, projects to build and train."""

import os
import shlex
import sys
from pathlib import Path

os.environ.pop("LD_PRELOAD", None)  # compilers need none of it

import numpy as np

from snnc.backends.emulator.projects import build_project
from snnc.backends.poplar.build import LIBRARY, SOURCES
from snnc.backends.poplar.engine import PoplarEngine

flags = shlex.split(sys.argv[1])
for folder in map(Path, sys.argv[2:]):
    engine = PoplarEngine(build_project(folder, SOURCES, LIBRARY, "-O0", flags, flags), folder)
    random = np.random.default_rng(0)

    def draw(engine=engine, random=random):
        shapes = {i["tensor"]: (1,) * i["static"] + engine.session.tensors[i["tensor"]].shape for i in engine.description["inputs"]}
        inputs = {name: (random.random(shape) < 0.4).astype(np.float32) for name, shape in shapes.items()}
        return inputs, random.integers(0, 2, engine.batch)

    batches = [draw() for _ in range(3)]
    for inputs, target in batches:
        engine.train_batch(inputs, target, 1e-2)
    engine.forward(batches[0][0], {})
    engine.get_parameters()
    engine.profile()
    engine.close()
print(f"trained {len(sys.argv) - 2} networks")
