"""Ctrl-C and termination signals, deferred until the current work reaches a good place to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAID: Final = b"stopping after this batch; once more stops at once.\n"


class Stop:
    """A request to stop, if any.

    Attributes
    ----------
    asked
        The signal; None: no request.
    """

    def __init__(self) -> None:
        self.asked: int | None = None

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Record the first signal; stop at once on the second one."""
        if self.asked is not None:
            raise KeyboardInterrupt
        self.asked = number
        os.write(2, _SAID)


@contextmanager
def stoppable(wanted: bool) -> Iterator[Stop]:
    """Record signals while the block runs; after it has ended normally, let the recorded one have its usual effect.

    Nothing is recorded unless `wanted`, nor outside the main thread, where Python receives no signals. An ignored signal
    stays ignored.
    """
    stop = Stop()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    before = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, stop.on_signal)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stop.asked is not None:
        signal.raise_signal(stop.asked)
