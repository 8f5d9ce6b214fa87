"""Read AEDAT 3.1 files: lines of text, then packets of events, each with a header of 28 bytes.

A header contains the type and the source (16 bits each), then the size of an event, the offset of its time, the clock overflow count,
the capacity, the number of events and the number of valid events (32 bits each), all little-endian. A polarity event is one word of 32
bits (from the lowest: valid, polarity, 15 bits of y, 15 bits of x) and 32 bits of microseconds; each clock overflow adds 2^31
microseconds. The events of a file are sorted by time. Source: iniVation, "AEDAT file formats".
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from snnc.data.readers.files import damaged, exactly, opened_file
from snnc.data.sample import Aer, Array
from snnc.errors import DataFormatError

_MAGIC: Final = b"#!AER-DAT3.1"
_HEADER: Final = np.dtype(
    {
        "names": ["kind", "source", "size", "time_at", "overflow", "capacity", "number", "valid"],
        "formats": ["<i2", "<i2", "<i4", "<i4", "<i4", "<i4", "<i4", "<i4"],
    }
)
_EVENT: Final = np.dtype([("data", "<u4"), ("time", "<i4")])
_POLARITY: Final = 1
"""Type of packets with polarity events."""
_LINE: Final = 4_096
"""Maximum bytes of a line of text."""
_PACKET: Final = np.dtype([(name, np.int64) for name in ("offset", "count", "overflow", "first", "last")])
"""A packet of events: byte offset of its first event, number of events, clock overflow count, microseconds of its first and last event."""


def index_of(path: Path) -> Array:
    """Return the packets of polarity events; raise DataFormatError for a file of a different format, and for damaged packets."""
    rows: list[tuple[int, int, int, int, int]] = []
    with opened_file(path) as stream:
        end = os.fstat(stream.fileno()).st_size
        _skip_text(stream, path)
        while (at := stream.tell()) < end:
            head = np.frombuffer(exactly(stream, _HEADER.itemsize, path, "the header of a packet"), _HEADER)[0]
            size, capacity, number = int(head["size"]), int(head["capacity"]), int(head["number"])
            if size < 1 or capacity < 0 or not 0 <= number <= capacity:
                raise damaged(path, at, f"a packet declares {number} events of {size} bytes, and a capacity of {capacity} events")
            if stream.tell() + size * capacity > end:
                raise damaged(path, at, f"a packet declares {size * capacity:,} bytes, but the file has only {end - stream.tell():,} more")
            if head["kind"] == _POLARITY and number:
                if size != _EVENT.itemsize:
                    raise damaged(path, at, f"a polarity event has {size} bytes, not {_EVENT.itemsize}")
                rows.append((stream.tell(), number, int(head["overflow"]), *_ends(stream, path, number, int(head["overflow"]))))
            stream.seek(at + _HEADER.itemsize + size * capacity)
    return np.array(rows, _PACKET)


def read_between(path: Path, packets: Array, start: int, end: int, height: int, width: int) -> Aer:
    """Return the valid events of `packets` with ``start <= time < end``, with times relative to `start`."""
    parts: list[Any] = []
    with opened_file(path) as stream:
        for offset, count, overflow, _, _ in packets[(packets["first"] < end) & (packets["last"] >= start)].tolist():
            stream.seek(offset)
            events = np.frombuffer(exactly(stream, count * _EVENT.itemsize, path, "a packet"), _EVENT)
            data, times = events["data"].astype(np.int64), events["time"].astype(np.int64) + (overflow << 31)
            inside = (times >= start) & (times < end) & (data & 1 == 1)
            x, y, polarity = data >> 17, data >> 2 & 0x7FFF, data >> 1 & 1
            wrong = inside & ((x >= width) | (y >= height))
            if wrong.any():
                first = int(np.argmax(wrong))
                at = offset + first * _EVENT.itemsize
                raise damaged(path, at, f"an event is at x {x[first]}, y {y[first]}, but the sensor has {width} x {height}")
            parts.append(np.stack([times - start, (polarity * height + y) * width + x])[:, inside])
    columns = np.concatenate([np.zeros((2, 0), np.int64), *parts], axis=1)
    return Aer(columns[0], columns[1], (2, height, width), polar=True)


def _skip_text(stream: IO[bytes], path: Path) -> None:
    if not stream.readline(_LINE).startswith(_MAGIC):
        raise DataFormatError(f"{str(path)!r} does not begin with {_MAGIC.decode()} (byte 0); give a file in AEDAT 3.1.")
    while True:
        at = stream.tell()
        line = stream.readline(_LINE)
        if not line.startswith(b"#"):
            stream.seek(at)
            return
        if line.startswith(b"#!END-HEADER"):
            return


def _ends(stream: IO[bytes], path: Path, number: int, overflow: int) -> tuple[int, int]:
    """Return the times of a packet's first and last event; `stream` is at the first one."""
    at = stream.tell()
    first = np.frombuffer(exactly(stream, _EVENT.itemsize, path, "an event"), _EVENT)[0]
    stream.seek(at + (number - 1) * _EVENT.itemsize)
    last = np.frombuffer(exactly(stream, _EVENT.itemsize, path, "an event"), _EVENT)[0]
    return int(first["time"]) + (overflow << 31), int(last["time"]) + (overflow << 31)
