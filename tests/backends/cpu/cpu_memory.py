"""Run by a test in a separate process, with ``allocations.cpp`` preloaded: compares bytes of training steps with the prediction."""

import ctypes
import json

import numpy as np
from cpu_projects import data, heavy, opened, wide
from indexed_nets import choosing, convolutional, pooled, sparse_recurrent
from nets import delayed, dense, recurrent
from wide import examples

from snnc.backends.native.memory import Needs, predicted_bytes, run_bytes
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI
from snnc.compiler.neurons.surrogates.library import parse_surrogate

STEPS, BATCH = 60, 24


counts = ctypes.CDLL(None)
counts.bytes_held.restype = counts.most_held.restype = ctypes.c_size_t


def started():
    """Bytes that are held; the most that are held counts from here."""
    counts.most_held()
    return counts.bytes_held()


def counted(before):
    return {"held": counts.bytes_held() - before, "most": counts.most_held() - before}


def windowed(random):
    return wide(random, LI(0.9))


def program_of(make, loss="ce_mean_membrane", surrogate=None):
    options = {"surrogate": parse_surrogate(surrogate)} if surrogate else {}
    return lower(make(np.random.default_rng(3)), loss=parse_loss(loss), optimizer=Adam(1e-2), loss_output="y", **options)


def row_of(engine, steps, batch, segment, threads):
    """What is predicted by the activity that the last step had, and the longest list, which lies twice in memory while it grows."""
    needs = Needs.of(engine.description)
    engine.least_memory(steps, batch)
    activity = engine.activity
    lists = [one.width * activity.fractions.get(one.name, 0) * one.neurons * (steps + one.past) * batch for one in needs.lists]
    predicted = predicted_bytes(engine.description, steps, batch, segment, threads, activity)
    return {"predicted": predicted, "growing": int(max(lists, default=0))}


def show(make, loss="ce_mean_membrane", surrogate=None, precision="float32"):
    program = program_of(make, loss, surrogate)
    inputs, labels = data(program, STEPS, BATCH, density=0.1)
    with opened(program, precision=precision):
        pass
    for threads, segment in ((1, STEPS), (2, STEPS), (2, 7)):
        before = started()
        with opened(program, threads, precision=precision) as engine:
            engine.segment = segment % STEPS
            engine.train_batch(inputs, labels, 0.0)
            row = {"run": False, "net": f"{make.__name__} {loss} {precision}", "threads": threads, "segment": segment} | counted(before)
            print(json.dumps(row | row_of(engine, STEPS, BATCH, segment, threads)), flush=True)
    before = started()
    with opened(program, 2, precision=precision) as engine:
        engine.forward(inputs, {})
        row = {"run": True, "net": f"{make.__name__} {precision}, run"} | counted(before)
        engine.least_memory(STEPS, BATCH)
        print(json.dumps(row | {"predicted": run_bytes(engine.description, STEPS, BATCH, 2, engine.activity)}), flush=True)


def large(random):
    return dense(random, 64, 4096, readout=LI(0.9), kind="spikes")


show(delayed, "ce_rate")
show(choosing)
show(windowed, surrogate="boxcar:0.2")
show(recurrent, precision="bfloat16")
show(heavy)
for further in examples((), (sparse_recurrent, pooled, convolutional)):
    show(further)

program, steps, batch = program_of(large), 200, 40
inputs, labels = data(program, steps, batch, density=0.1)
with opened(program, 2):
    pass
for limit in (None, 100 << 20):
    before = started()
    with opened(program, 2, memory=limit) as engine:
        # The second step knows what the first one listed.
        for _ in range(2):
            counts.most_held()
            engine.train_batch(inputs, labels, 0.0)
        segment = int(engine.session.get("segment")[0]) or steps
        row = {"run": False, "net": "large", "threads": 2, "segment": segment, "limit": limit} | counted(before)
        print(json.dumps(row | row_of(engine, steps, batch, segment, 2)), flush=True)
