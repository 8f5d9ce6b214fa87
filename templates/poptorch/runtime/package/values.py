"""Values other than weights that change during training: the gradient window, and the number of spikes that are sent."""

import hashlib
import math

import torch

from .description import INPUTS, NETWORK, STEPS

LIMITS = NETWORK["limits"]
"""Sources with a spike limit: name, number of neurons, compiled capacity, and index of the input or name of the buffer with the limit."""
WINDOWS = NETWORK["windows"]
"""Buffers of the lower bounds of gradient windows, and the compiled lower bound."""
NAMED = WINDOWS["low"] + [limit["buffer"] for limit in LIMITS if limit["buffer"]]
"""Buffers of the network that a run can change."""
WORD = 0xFFFFFFFF


def schedule(text):
    """Return the schedule of a text, as a function of the update: 5, linear:10,5,updates=20 or exponential:-100,-0.1.

    The exponential schedule halves the distance to the end in each update, or multiplies it by a third number.
    """
    name, _, rest = text.partition(":")
    if not rest:
        return lambda update: float(text)
    numbers = [float(part.partition("=")[2] or part) for part in rest.split(",")]
    if name == "exponential" and len(numbers) in (2, 3):
        start, end, factor = numbers + [0.5] * (3 - len(numbers))
        return lambda update: end + (start - end) * factor**update
    if name == "linear" and len(numbers) == 3:
        start, end, updates = numbers
        return lambda update: start + (end - start) * min(update / updates, 1.0)
    raise SystemExit("{!r} is not a schedule; write a number, linear:10,5,updates=20 or exponential:-100,-0.1".format(text))


class RunValues:
    """Sets the values for each update.

    `network` contains the buffers; `window` and `capacity` are texts of schedules, or None for the compiled value; a capacity that ends
    with % is a percentage of each source's neurons. `drop` is lowest or random.
    """

    def __init__(self, network, window=None, capacity=None, drop="lowest", seed=0):
        if window is not None and not WINDOWS["low"]:
            raise SystemExit("the network was compiled without a gradient window; compile it with --gradient-window")
        fixed = [i["label"] for i in INPUTS if i["static"] and any(limit["source"] == i["name"] + "_in" for limit in LIMITS)]
        if drop != "lowest" and fixed:
            raise SystemExit("the input {!r} is the same at every step, but a random choice is not; omit --drop".format(fixed[0]))
        if (capacity is not None or drop != "lowest") and not LIMITS:
            raise SystemExit("the network was compiled to send all spikes; compile it with --mode drop and --capacity")
        self.network, self.drop, self.seed = network, drop, seed
        self.window = None if window is None else schedule(window)
        self.share = capacity is not None and capacity.rstrip().endswith("%")
        self.capacity = None if capacity is None else schedule(capacity.rstrip().rstrip("%").strip())
        self.now = {}

    @property
    def changes(self):
        """Return whether any value differs from the compiled one."""
        return self.window is not None or self.capacity is not None or self.drop != "lowest"

    def set(self, update):
        """Set the buffers for an update."""
        if self.window is not None:
            low = self.window(update)
            if low < WINDOWS["widest"] * (1 + 1e-6):
                raise SystemExit("the gradient window begins at {}, but the compiled one at {}".format(low, WINDOWS["widest"]))
            for name in WINDOWS["low"]:
                getattr(self.network, name).fill_(low)
        for limit in LIMITS:
            self.now[limit["source"]] = self._capacity(limit, update), choice_key(self.drop, self.seed, update, limit["source"])
            if limit["buffer"]:
                getattr(self.network, limit["buffer"]).copy_(torch.tensor([float(n) for n in self.now[limit["source"]]]))

    def sent(self, inputs, always=False):
        """Return the inputs [batch, steps, ...] without the spikes that the host drops.

        The device itself sends the lowest ids up to the compiled capacity; with `always`, the host does, to count the others.
        """
        chosen = list(inputs)
        for limit in LIMITS:
            compiled = limit["capacity"], -1
            now = self.now.get(limit["source"], compiled)
            if limit["input"] is not None and (always or now != compiled):
                spikes = chosen[limit["input"]]
                static = INPUTS[limit["input"]]["static"]
                chosen[limit["input"]] = sent(spikes.unsqueeze(1), *now).squeeze(1) if static else sent(spikes, *now)
        return chosen

    @staticmethod
    def dropped(inputs, chosen):
        """Return the number of spikes that `chosen` lacks; those of an input that is the same at every step count at every step."""
        pairs = zip(INPUTS, inputs, chosen)
        return sum(int((before - after).sum()) * (STEPS if i["static"] else 1) for i, before, after in pairs if before is not after)

    def _capacity(self, limit, update):
        if self.capacity is None:
            return limit["capacity"]
        value = self.capacity(update)
        wanted = max(1, math.floor(limit["width"] * value / 100 + 0.5)) if self.share else round(value)
        if wanted < 1:
            raise SystemExit("the capacity is {}; it must be 1 or more".format(value))
        return min(wanted, limit["capacity"])


def choice_key(drop, seed, update, source):
    """Return the key for the selection in an update; -1: the lowest ids."""
    if drop == "lowest":
        return -1
    return int.from_bytes(hashlib.blake2b("{} {} {}".format(seed, update, source).encode(), digest_size=3).digest(), "little")


def mixed(x):
    """A bijection of the unsigned 32-bit integers, computed with 64 bits."""
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & WORD
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & WORD
    return x ^ (x >> 16)


def sent(spikes, capacity, key):
    """Return spikes [batch, steps, ...] with at most `capacity` per step, as snnc.compiler.lowering.spike_limits defines them."""
    rows = spikes.flatten(2)
    if key < 0:
        return (rows * (rows.cumsum(-1) <= capacity)).reshape(spikes.shape)
    steps = torch.arange(rows.shape[1], dtype=torch.int64)
    ids = torch.arange(rows.shape[2], dtype=torch.int64)
    of_step = mixed((key * 0x9E3779B1 + steps * 0x85EBCA77) & WORD)
    scores = mixed((of_step[:, None] + ids * 0xC2B2AE3D) & WORD)
    order = torch.where(rows != 0, scores, torch.full_like(scores, WORD + 1)).argsort(-1).argsort(-1)
    return (rows * (order < capacity)).reshape(spikes.shape)
