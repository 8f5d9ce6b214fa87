"""An engine for tests of the harness: snnc's reference with possible failures of an engine, selected by the variant."""

import os
import time

from snnc.benchmarks.cpu.engines import with_snnc

VERSIONS = ("numpy", "no-such-package")


def load():
    print("libraries print to standard output")


class FaultyEngine(with_snnc.SnncEngine):
    def __init__(self, problem, mode, variant, device="cpu"):
        self._fault, self._turns = variant, 0
        super().__init__(problem, "window" if variant == "window as exact" else mode, "reference")

    def step(self):
        print("also while they train")
        if self._fault == "dies":
            os.write(2, b"no memory left\n")
            os._exit(3)
        if self._fault == "hangs":
            time.sleep(60)
        if self._fault == "raises":
            raise ValueError("a shape is wrong")
        if self._fault == "slow":
            time.sleep(0.02)
        if self._fault == "dies later":
            time.sleep(0.11)  # a turn is one step, so it has one reset
        return super().step() * (1.001 if self._fault == "loss" else 1)

    def reset(self):
        self._turns += 1
        if self._fault == "dies later" and self._turns == 3:
            os._exit(3)
        super().reset()

    def gradients(self):
        factor = 1.001 if self._fault == "gradient" else 1
        return {name: factor * value for name, value in super().gradients().items()}


ENGINE = FaultyEngine
