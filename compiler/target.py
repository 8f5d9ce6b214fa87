"""A machine of many tiles with local memory, as data. The machines that snnc knows are TOML files in ``compiler/targets``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What the mapping and the cost model know of a machine; every number's source stands in its TOML file.

    Attributes
    ----------
    name
        Name on the command line.
    chips, tiles_per_chip
        Processors, and tiles on each.
    tile_bytes
        Local memory of a tile, bytes.
    workers
        Hardware threads of a tile; each issues once every `workers` tile cycles.
    clock_hz
        Tile clock.
    exchange_bytes_per_cycle
        What a tile can receive (or send) in a cycle, on the same chip.
    fragment_cycles
        Cycles that each piece of a tile's incoming data costs beside its bytes.
    sync_cycles, superstep_cycles
        On-chip barrier; set-up and control of one superstep.
    link_sync_cycles, link_bytes_per_second
        Barrier over chips; what one chip can send to the others.
    fixed_tile_bytes
        Control code and stack on each used tile.
    fragment_code_bytes
        Exchange code of one fragment.
    vertex_start_cycles
        Worker cycles to start one vertex.
    ipu_version
        Name by which the Poplar backend opens it ("ipu2"), empty for machines of other makers.
    """

    name: str
    chips: int
    tiles_per_chip: int
    tile_bytes: int
    workers: int
    clock_hz: float
    exchange_bytes_per_cycle: float
    fragment_cycles: float
    sync_cycles: float
    superstep_cycles: float
    link_sync_cycles: float
    link_bytes_per_second: float
    fixed_tile_bytes: int
    fragment_code_bytes: int
    vertex_start_cycles: float
    ipu_version: str

    @property
    def tiles(self) -> int:
        """Tiles of all chips."""
        return self.chips * self.tiles_per_chip
