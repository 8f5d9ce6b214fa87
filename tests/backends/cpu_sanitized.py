"""Run by a test in a process of its own: trains small networks whose programs are built with the compiler flags of the command line."""

import sys

import numpy as np
from cpu_projects import QUICK, data, opened
from indexed_nets import choosing, convolutional, sparse_recurrent
from nets import delayed

from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.optimizers import Adam

NETS = (delayed, sparse_recurrent, convolutional, choosing)
for make in NETS:
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-2))
    with opened(program, threads=2, flags=(*QUICK, *sys.argv[1:])) as engine:
        for steps, batch in ((7, 5), (3, 1)):
            inputs, target = data(program, steps, batch)
            engine.forward(inputs, {})
            engine.train_batch(inputs, target, 1e-2)
            engine.gradients()
        engine.reset(2, {})
        for t in range(3):
            engine.step({id_: array[t][:1].repeat(2, 0) for id_, array in inputs.items()})
print(f"trained {len(NETS)} networks")
