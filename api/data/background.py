"""Produce items in a background thread, a bounded number ahead of their use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Full, Queue
from typing import Final, TypeVar

T = TypeVar("T")

_WAIT: Final = 0.1
"""Seconds between checks of whether the consumer has stopped."""


def read_ahead(make: Callable[[], Iterator[T]], ahead: int) -> Iterator[T]:
    """Yield the items of ``make()``; a thread produces them in advance and stores up to `ahead` of them.

    The thread starts when the first item is requested. It ends after the last item, when this iterator is closed, or on an error, which
    this iterator raises.
    """
    queue: Queue[tuple[str, T | BaseException | None]] = Queue(ahead)
    stopped = threading.Event()

    def put(kind: str, item: T | BaseException | None) -> bool:
        while not stopped.is_set():
            try:
                queue.put((kind, item), timeout=_WAIT)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in make():
                if not put("item", item):
                    return
        except BaseException as error:  # raised in the consumer
            put("error", error)
        else:
            put("end", None)

    thread = threading.Thread(target=work, name="snnc-data", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = queue.get()
            if kind == "end":
                return
            if isinstance(item, BaseException):
                raise item
            yield item  # type: ignore[misc]
            del item
    finally:
        stopped.set()
        while not queue.empty():  # end a wait of the thread for room
            queue.get_nowait()
        thread.join()
