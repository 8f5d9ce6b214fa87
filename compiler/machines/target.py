"""Description of a machine of many tiles with local memory; the TOML files in this folder describe the included machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

Wire: TypeAlias = tuple[int, int, int]
"""Two chips and the number of links between them; a link transfers data in both directions at once."""


@dataclass(frozen=True)
class Links:
    """Connections between the chips of a target. In this class, a *machine* is one board or server; chips are numbered across machines."""

    bytes_per_second: float  # rate of one link in one direction
    chips_per_machine: int  # number of chips of one machine; the last machine may have fewer
    inside: tuple[Wire, ...] = ()  # wires between the chips ``0 … chips_per_machine - 1`` of each machine
    onward: tuple[Wire, ...] = ()  # wires from chips of each machine (first number) to chips of the next (second number)
    ring: bool = False  # whether the last of three or more machines is connected to the first in the same way
    switch: int = 0  # number of links from every chip to one switch that connects all chips; 0 without a switch

    def wires(self, chips: int) -> tuple[Wire, ...]:
        """Return all wires between the chips ``0 … chips - 1``; a switch counts as chip number `chips`."""
        size = self.chips_per_machine
        machines = -(-chips // size)
        wires = [(m * size + a, m * size + b, n) for m in range(machines) for a, b, n in self.inside]
        wires += [(m * size + a, (m + 1) * size + b, n) for m in range(machines - 1) for a, b, n in self.onward]
        if self.ring and machines > 2:
            wires += [((machines - 1) * size + a, b, n) for a, b, n in self.onward]
        joined = [(a, b, n) for a, b, n in wires if max(a, b) < chips]
        return tuple(joined + [(chip, chips, self.switch) for chip in range(chips) if self.switch])


@dataclass(frozen=True)
class TileMemory:
    """Structure of a tile's memory."""

    executable_bytes: int = 0  # number of bytes that may contain code; 0: all bytes of the memory
    element_bytes: int = 0  # size in bytes of a memory bank, which serves one access per cycle; 0: unknown


@dataclass(frozen=True)
class Compute:
    """Peak arithmetic of a tile; 0: unknown."""

    # Number of multiply-adds per cycle of the matrix unit.
    fp32_macs_per_cycle: float = 0.0
    fp16_macs_per_cycle: float = 0.0
    # Number of values processed by one vector instruction.
    fp32_width: int = 0
    fp16_width: int = 0
    # Number of bytes that one instruction can load, and that it can store in parallel with a load.
    load_bytes_per_issue: int = 0
    store_bytes_per_issue: int = 0


@dataclass(frozen=True)
class Streaming:
    """Memory outside the chips: bytes, and rate in bytes per second in one direction, for each chip."""

    bytes_per_chip: int
    bytes_per_second: float


@dataclass(frozen=True)
class Host:
    """Connection to the host."""

    bytes_per_second: float  # total rate to all chips, in one direction


@dataclass(frozen=True)
class Target:
    """Description of a machine for the mapping and the cost model; the included TOML files give the source of every number."""

    name: str  # name on the command line
    device: str  # name with which a backend opens the machine; empty if only the emulator runs it
    # Number of chips, and number of tiles on each.
    chips: int
    tiles_per_chip: int
    tile_bytes: int  # size of a tile's local memory in bytes
    workers: int  # number of hardware threads of a tile; each issues an instruction once every `workers` tile cycles
    clock_hz: float  # clock frequency of the tiles in Hz
    exchange_bytes_per_cycle: float  # bytes that a tile can receive (or send) per cycle on the same chip
    fragment_cycles: float  # cycles per received fragment, in addition to those of its bytes
    # Cycles of the on-chip barrier; cycles of set-up and control of a superstep.
    sync_cycles: float
    superstep_cycles: float
    link_sync_cycles: float  # cycles of a barrier across chips
    fixed_tile_bytes: int  # bytes of control code and stack on each tile in use
    fragment_code_bytes: int  # bytes of exchange code per received fragment
    vertex_start_cycles: float  # worker cycles to start a vertex
    links: Links | None = None  # connections between the chips; None on a machine with one chip
    # Structure of a tile's memory, arithmetic, memory outside the chips and the connection to the host, if known.
    memory: TileMemory = TileMemory()
    compute: Compute = Compute()
    streaming: Streaming | None = None
    host: Host | None = None
    instruction_bytes: int = 4  # bytes of an instruction in a tile's memory

    @property
    def tiles(self) -> int:
        """Number of tiles of all chips."""
        return self.chips * self.tiles_per_chip

    @property
    def link_bytes_per_second(self) -> float:
        """Rate at which the chip with the most links can send to other chips over all its links; 0 with one chip or without links."""
        if self.links is None or self.chips == 1:
            return 0.0
        ends = [0] * (self.chips + 1)
        for a, b, count in self.links.wires(self.chips):
            ends[a] += count
            ends[b] += count
        return max(ends[: self.chips]) * self.links.bytes_per_second

    @property
    def code_bytes(self) -> int:
        """Number of bytes of a tile that may contain code."""
        return min(self.memory.executable_bytes or self.tile_bytes, self.tile_bytes)


def differ_in_clock_only(one: Target, other: Target) -> bool:
    """Return whether two machines, each of one chip, differ only in name, device and clock."""
    return replace(one, name=other.name, device=other.device, clock_hz=other.clock_hz) == other and other.chips == 1
