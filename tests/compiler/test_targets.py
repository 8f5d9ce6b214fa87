from __future__ import annotations

from pathlib import Path

import pytest

from snnc.compiler.mapping.errors import (
    MissingTargetKeyError,
    TargetFileError,
    TargetValueError,
    UnknownTargetError,
    UnknownTargetKeyError,
)
from snnc.compiler.targets import load_target, parse_target, target_names


def _text(name: str = "gc200") -> str:
    import snnc.compiler.targets as package

    return (Path(package.__file__).parent / f"{name}.toml").read_text(encoding="utf-8")


def test_known_machines() -> None:
    assert set(target_names()) == {"gc2", "gc200", "bow", "m2000", "bow2000", "pod4", "pod16", "pod64"}


@pytest.mark.parametrize(
    ("name", "tiles", "tile_bytes", "version"),
    [
        ("gc2", 1216, 256 << 10, "ipu1"),
        ("gc200", 1472, 624 << 10, "ipu2"),
        ("bow", 1472, 624 << 10, "ipu21"),
        ("m2000", 4 * 1472, 624 << 10, "ipu2"),
        ("bow2000", 4 * 1472, 624 << 10, "ipu21"),
        ("pod4", 4 * 1472, 624 << 10, "ipu2"),
        ("pod16", 16 * 1472, 624 << 10, "ipu2"),
        ("pod64", 64 * 1472, 624 << 10, "ipu2"),
    ],
)
def test_sizes_of_known_machines(name: str, tiles: int, tile_bytes: int, version: str) -> None:
    target = load_target(name)
    assert (target.name, target.tiles, target.tile_bytes, target.ipu_version) == (name, tiles, tile_bytes, version)
    assert target.workers == 6
    assert target.exchange_bytes_per_cycle == 4


def test_every_number_of_a_known_machine_has_its_source_beside_it() -> None:
    for name in target_names():
        lines = [line for line in _text(name).splitlines() if "=" in line and not line.startswith(("#", "name"))]
        assert all("#" in line for line in lines)


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(_text().replace("tiles_per_chip = 1472", "tiles_per_chip = 4").replace('"gc200"', '"tiny"'), encoding="utf-8")
    assert load_target(path).tiles == 4
    assert load_target(str(path)).name == "tiny"


def test_whole_numbers_serve_as_floats() -> None:
    assert load_target("gc200") == parse_target(_text().replace("sync_cycles = 126.0", "sync_cycles = 126"), "x")


def test_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownTargetError, match=r"SNNC-E301.*'gc300'.*gc200"):
        load_target("gc300")


def test_text_that_is_not_toml() -> None:
    with pytest.raises(TargetFileError, match="SNNC-E302"):
        parse_target("chips = = 2", "x.toml")


def test_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TargetFileError, match="SNNC-E302"):
        load_target(tmp_path / "bad.toml")


def test_unknown_key() -> None:
    with pytest.raises(UnknownTargetKeyError, match=r"SNNC-E303.*colour"):
        parse_target(_text() + '\ncolour = "red"\n', "x.toml")


def test_missing_key() -> None:
    with pytest.raises(MissingTargetKeyError, match=r"SNNC-E304.*workers"):
        parse_target("\n".join(line for line in _text().splitlines() if not line.startswith("workers")), "x.toml")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("chips = 1 ", "chips = 0 "),
        ("chips = 1 ", "chips = -3 "),
        ("chips = 1 ", "chips = 1.5 "),
        ("chips = 1 ", "chips = true "),
        ("chips = 1 ", 'chips = "1" '),
        ("clock_hz = 1.33e9", "clock_hz = nan"),
        ("clock_hz = 1.33e9", "clock_hz = inf"),
        ("fragment_cycles = 9.0", "fragment_cycles = -1"),
        ('name = "gc200"', 'name = ""'),
        ('ipu_version = "ipu2"', "ipu_version = 2"),
    ],
)
def test_values_outside_their_range(old: str, new: str) -> None:
    assert old in _text()
    with pytest.raises(TargetValueError, match="SNNC-E305"):
        parse_target(_text().replace(old, new), "x.toml")
