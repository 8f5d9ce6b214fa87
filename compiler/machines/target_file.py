"""Target files: TOML text to :class:`~snnc.compiler.machines.target.Target`, with a check of every value."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final

import networkx as nx

from snnc.compiler.machines.errors import (
    LinksError,
    MachineSizeError,
    MissingTargetKeyError,
    TargetFileError,
    TargetValueError,
    UnknownTargetKeyError,
    UnreachableChipError,
)
from snnc.compiler.machines.target import Compute, Host, Links, Streaming, Target, TileMemory, Wire

MAX_TILES: Final = 1 << 22
"""Maximum number of tiles of a machine: plans need a few hundred bytes per tile."""
MAX_CHIPS: Final = 1 << 10
"""Maximum number of chips of a machine: routes are computed between all pairs of chips."""
MAX_LINKS: Final = 1 << 20
TABLES: Final[Mapping[str, type]] = {
    "links": Links,
    "memory": TileMemory,
    "compute": Compute,
    "streaming": Streaming,
    "host": Host,
}
_POSITIVE: Final = frozenset(
    {"chips", "tiles_per_chip", "tile_bytes", "workers", "clock_hz", "exchange_bytes_per_cycle"}
    | {"links.bytes_per_second", "links.chips_per_machine", "streaming.bytes_per_second", "host.bytes_per_second"}
)
LEAST: Final = 1e-6
"""Smallest nonzero number in a target file."""
MOST: Final = 1e18
"""Largest number in a target file; with :data:`LEAST`, it keeps cycles, seconds and bytes finite."""

_LARGEST: Final[Mapping[str, int]] = {
    "workers": 1024,
    "instruction_bytes": 1024,
    "links.switch": MAX_LINKS,
    "compute.fp32_width": 1 << 20,
    "compute.fp16_width": 1 << 20,
    "compute.load_bytes_per_issue": 1 << 20,
    "compute.store_bytes_per_issue": 1 << 20,
}
"""Maxima of quantities that snnc enumerates, or that integers of a program must represent."""


def read_toml(text: str, where: str) -> dict[str, Any]:
    """Parse TOML; messages call the file `where`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetFileError(f"the target file {where!r} is not TOML: {error}.") from None
    except RecursionError:
        raise TargetFileError(f"the target file {where!r} nests its values too deeply.") from None


def merge(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` overlaid with `values`; tables are merged key by key."""
    merged = dict(base)
    for key, value in values.items():
        tables = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = {**merged[key], **value} if tables else value
    return merged


def target_from(values: Mapping[str, Any], where: str) -> Target:
    """Check the values of a target file and build the target; each fault raises its error of :mod:`snnc.compiler.machines.errors`."""
    tables = {name: _table(name, kind, values[name], where) for name, kind in TABLES.items() if name in values}
    numbers = {key: value for key, value in values.items() if key not in TABLES}
    known = [field for field in fields(Target) if field.name not in TABLES]
    target = Target(**_read(numbers, known, "", where, [*(f.name for f in known), *TABLES]), **tables)
    _check_sizes(target, where)
    _check_links(target, where)
    return target


def _table(name: str, kind: type, values: Any, where: str) -> Any:
    if not isinstance(values, dict):
        raise TargetValueError(f"{name} = {values!r} of the target file {where!r} is not a table; write [{name}] and its keys below.")
    known = fields(kind)
    return kind(**_read(values, known, f"{name}.", where, [field.name for field in known]))


def _read(values: Mapping[str, Any], known: Iterable[Field[Any]], prefix: str, where: str, names: list[str]) -> dict[str, Any]:
    """Read the fields `known` of one table; `prefix` is the name of the table and a dot, `names` are all keys that it may contain."""
    unknown = sorted(set(values) - set(names))
    if unknown:
        keys = ", ".join(prefix + key for key in unknown)
        raise UnknownTargetKeyError(f"the target file {where!r} contains the unknown {keys}; known keys are {', '.join(names)}.")
    missing = [prefix + field.name for field in known if field.default is MISSING and field.name not in values]
    if missing:
        raise MissingTargetKeyError(
            f"the target file {where!r} lacks {', '.join(missing)}; start from a copy of an included target (snnc targets NAME), "
            'or write extends = "NAME".'
        )
    return {field.name: _value(prefix + field.name, str(field.type), values[field.name], where) for field in known if field.name in values}


def _value(key: str, kind: str, value: Any, where: str) -> Any:
    setting = f"{key} = {value!r} of the target file {where!r}"
    if kind == "str":
        if not isinstance(value, str) or (key == "name" and not value):
            raise TargetValueError(f"{setting} is not a string in quotes.")
        return value
    if kind == "bool":
        if not isinstance(value, bool):
            raise TargetValueError(f"{setting} is neither true nor false.")
        return value
    if kind.startswith("tuple"):
        return _wires(setting, value)
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise TargetValueError(f"{setting} is not a finite number.")
    if kind == "int" and not isinstance(value, int):
        raise TargetValueError(f"{setting} is not a whole number.")
    if value < 0 or (value == 0 and key in _POSITIVE):
        raise TargetValueError(f"{setting} must be {'more than 0' if key in _POSITIVE else '0 or more'}.")
    if value and not LEAST <= value <= MOST:
        raise TargetValueError(f"{setting} is out of range: {LEAST:g} to {MOST:g}. Is its unit right?")
    if value > _LARGEST.get(key, MOST):
        raise TargetValueError(f"{setting} is more than the {_LARGEST[key]:,} that snnc supports. Is its unit right?")
    return value if kind == "int" else float(value)


def _wires(setting: str, value: Any) -> tuple[Wire, ...]:
    def is_whole(wire: Any) -> bool:
        return isinstance(wire, list) and len(wire) == 3 and all(isinstance(n, int) and not isinstance(n, bool) for n in wire)

    if not isinstance(value, list) or not all(is_whole(wire) for wire in value):
        raise TargetValueError(f"{setting} is not a list of wires [chip, chip, number of links].")
    return tuple((a, b, n) for a, b, n in value)


def _check_sizes(target: Target, where: str) -> None:
    if target.chips > MAX_CHIPS or target.tiles > MAX_TILES:
        raise MachineSizeError(
            f"the target file {where!r} describes {target.chips:,} chips with {target.tiles:,} tiles; snnc maps onto at most "
            f"{MAX_CHIPS:,} chips and {MAX_TILES:,} tiles."
        )
    if target.fixed_tile_bytes >= target.tile_bytes:
        raise TargetValueError(
            f"fixed_tile_bytes = {target.fixed_tile_bytes:,} of the target file {where!r}, control code and stack, leave no space in the "
            f"tile_bytes = {target.tile_bytes:,} of a tile. Are their units right?"
        )


def _check_links(target: Target, where: str) -> None:
    links = target.links
    if links is None:
        if target.chips > 1:
            raise MissingTargetKeyError(
                f"the target file {where!r} describes {target.chips} chips and lacks the table [links], which describes "
                "how they are connected."
            )
        return
    size = links.chips_per_machine
    for name, wires in (("inside", links.inside), ("onward", links.onward)):
        for a, b, count in wires:
            if not (0 <= a < size and 0 <= b < size) or not 1 <= count <= MAX_LINKS or (name == "inside" and a == b):
                raise LinksError(
                    f"links.{name} of the target file {where!r} contains [{a}, {b}, {count}]; a wire connects two chips from 0 to "
                    f"{size - 1} with 1 to {MAX_LINKS:,} links."
                )
    alone = _unreached(target.chips, links)
    if alone:
        raise UnreachableChipError(
            f"no links of the target file {where!r} lead from chip 0 to chip {', '.join(map(str, alone[:5]))}"
            f"{' and others' if len(alone) > 5 else ''}; connect machines with links.onward or all chips with links.switch."
        )


def _unreached(chips: int, links: Links) -> list[int]:
    wires: nx.Graph[int] = nx.Graph((a, b) for a, b, _ in links.wires(chips))
    wires.add_node(0)
    reached = nx.node_connected_component(wires, 0)
    return [chip for chip in range(chips) if chip not in reached]
