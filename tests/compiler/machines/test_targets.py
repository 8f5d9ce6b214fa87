from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from snnc.compiler.ir.plan_json import from_plain
from snnc.compiler.machines import load_target, parse_target, target_names, target_text
from snnc.compiler.machines.errors import (
    LinksError,
    MachineSizeError,
    MissingTargetKeyError,
    TargetFileError,
    TargetValueError,
    UnknownTargetError,
    UnknownTargetKeyError,
    UnreachableChipError,
)
from snnc.compiler.machines.target import Links, Target, TileMemory


def _text(name: str = "gc200") -> str:
    import snnc.compiler.machines as package

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
    assert (target.name, target.tiles, target.tile_bytes, target.device) == (name, tiles, tile_bytes, version)
    assert target.workers == 6
    assert target.exchange_bytes_per_cycle == 4


def test_every_number_of_a_known_machine_has_its_source_beside_it() -> None:
    for name in target_names():
        lines = [line for line in _text(name).splitlines() if "=" in line and not line.startswith(("#", "name", "extends"))]
        bare = [line for line in lines if "#" not in line]
        assert [line.split(" ")[0] for line in bare] == []


@pytest.mark.parametrize("name", ["m2000", "pod4", "pod16", "pod64", "bow2000"])
def test_chips_of_known_machines_have_ten_links_at_most(name: str) -> None:
    target = load_target(name)
    ends = [0] * target.chips
    for a, b, count in target.links.wires(target.chips):
        ends[a] += count
        ends[b] += count
    assert max(ends) == (8 if target.chips == 4 else 10)
    assert target.link_bytes_per_second == max(ends) * 128e9 * 0.85 / 8
    if name == "pod64":
        assert set(ends) == {10}


def test_rates_of_known_machines_are_those_of_the_product_briefs() -> None:
    flops = {name: 2 * t.compute.fp32_macs_per_cycle * t.tiles * t.clock_hz for name in target_names() for t in [load_target(name)]}
    assert flops["gc200"] == pytest.approx(62.5e12, rel=0.01)
    assert flops["gc2"] == pytest.approx(31.1e12, rel=0.01)
    assert flops["pod16"] == pytest.approx(1e15, rel=0.01)


def test_a_machine_that_extends_another_says_only_what_differs() -> None:
    text = 'name = "two"\nextends = "bow"\nchips = 2\n[links]\nchips_per_machine = 2\ninside = [[0, 1, 3]]\nonward = []\n'
    target, base = parse_target(text, "two.toml"), load_target("bow")
    assert (target.name, target.chips, target.clock_hz) == ("two", 2, 1.85e9)
    assert target.links == Links(13.6e9, 2, ((0, 1, 3),))
    assert target.memory == base.memory == TileMemory(212992, 16384)


@pytest.mark.parametrize("base", ['"gc300"', "3", '["gc200"]'])
def test_a_machine_extends_one_that_is_known(base: str) -> None:
    with pytest.raises(TargetValueError, match=r"SNNC-E305.*gc200"):
        parse_target(f'name = "x"\nextends = {base}\n', "x.toml")


def test_a_machine_that_extends_another_has_a_name_of_its_own() -> None:
    with pytest.raises(MissingTargetKeyError, match=r"SNNC-E304.*lacks name"):
        parse_target('extends = "gc200"', "x.toml")


def test_wires_are_numbered_through_the_machines() -> None:
    links = Links(1.0, 2, ((0, 1, 3),), ((1, 0, 1),), ring=True)
    assert links.wires(6) == ((0, 1, 3), (2, 3, 3), (4, 5, 3), (1, 2, 1), (3, 4, 1), (5, 0, 1))
    assert links.wires(4) == ((0, 1, 3), (2, 3, 3), (1, 2, 1))  # a ring of two machines would join them twice
    assert links.wires(5) == ((0, 1, 3), (2, 3, 3), (1, 2, 1), (3, 4, 1))  # the last machine holds one chip, and the ring is open there
    assert links.wires(1) == ()
    assert Links(1.0, 3, switch=2).wires(2) == ((0, 2, 2), (1, 2, 2))


def test_code_runs_from_part_of_the_memory() -> None:
    assert load_target("gc200").code_bytes == 212992
    assert load_target("gc2").code_bytes == 262144


@pytest.mark.parametrize("name", target_names())
def test_a_target_is_exact_as_data(name: str) -> None:
    target = load_target(name)
    assert from_plain(Target, json.loads(json.dumps(asdict(target)))) == target


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


def test_text_that_nests_too_deeply() -> None:
    with pytest.raises(TargetFileError, match="nests"):
        parse_target("a = " + "[" * 5000 + "]" * 5000, "x.toml")


def test_barriers_may_cost_nothing() -> None:
    text = _text().replace("sync_cycles = ", "sync_cycles = 0.0  # ")
    assert parse_target(text, "x.toml").sync_cycles == parse_target(text, "x.toml").link_sync_cycles == 0


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


def test_missing_key_of_a_table() -> None:
    with pytest.raises(MissingTargetKeyError, match=r"SNNC-E304.*links\.chips_per_machine"):
        parse_target(_text().replace("chips_per_machine = 4", ""), "x.toml")


def test_several_chips_need_links() -> None:
    text = _text("gc2").replace("chips = 1 ", "chips = 2 ")
    with pytest.raises(MissingTargetKeyError, match=r"SNNC-E304.*\[links\]"):
        parse_target(text, "x.toml")


def test_unknown_key_of_a_table() -> None:
    with pytest.raises(UnknownTargetKeyError, match=r"SNNC-E303.*links\.colour"):
        parse_target(_text().replace("chips_per_machine", 'colour = "red"\nchips_per_machine'), "x.toml")


def test_a_table_has_keys() -> None:
    text = re.sub(r"\[host\]\n(?:[^\[\n].*\n)*", "", _text())
    with pytest.raises(TargetValueError, match=r"SNNC-E305.*\[host\]"):
        parse_target(f"host = 8e9\n{text}", "x.toml")


@pytest.mark.parametrize("wire", ["[0, 4, 1]", "[-1, 1, 1]", "[1, 1, 1]", "[0, 1, 0]", "[0, 1, -2]"])
def test_wires_join_two_chips_of_the_machine(wire: str) -> None:
    with pytest.raises(LinksError, match="SNNC-E330"):
        parse_target(_text().replace("[0, 1, 4]", wire), "x.toml")


def test_every_chip_is_joined() -> None:
    text = 'name = "x"\nextends = "gc200"\nchips = 16\n[links]\nonward = []\n'
    with pytest.raises(UnreachableChipError, match=r"SNNC-E331.*chip 4, 5, 6, 7, 8 and others"):
        parse_target(text, "x.toml")


@pytest.mark.parametrize("size", ["chips = 2000", "tiles_per_chip = 10000000"])
def test_machines_are_not_larger_than_plans_can_be(size: str) -> None:
    with pytest.raises(MachineSizeError, match="SNNC-E332"):
        parse_target(f'name = "x"\nextends = "gc200"\n{size}\n', "x.toml")


def test_the_text_of_a_target_can_be_read() -> None:
    assert parse_target(target_text("pod16"), "copy") == load_target("pod16")


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
        ("clock_hz = 1.33e9", "clock_hz = 5e-324"),
        ("clock_hz = 1.33e9", "clock_hz = 1e300"),
        ("chips = 1 ", f"chips = {10**400} "),
        ("fragment_cycles = 9.0", "fragment_cycles = -1"),
        ('name = "gc200"', 'name = ""'),
        ('device = "ipu2"', "device = 2"),
        ("fp32_width = 2", "fp32_width = -2"),
        ("bytes_per_second = 13.6e9", "bytes_per_second = 0"),
        ("chips_per_machine = 4", "chips_per_machine = 0"),
        ("[0, 1, 4]", "[0, 1]"),
        ("[0, 1, 4]", "[0, 1.5, 4]"),
        ("[0, 1, 4]", '"0-1"'),
        ("[host]\nbytes_per_second = 8.0e9", "[host]\nbytes_per_second = true"),
        ("chips_per_machine = 4", 'chips_per_machine = 4\nring = "yes"'),
        ("workers = 6", "workers = 1000000000000"),
        ("workers = 6", "workers = 1025"),
        ("instruction_bytes = 4", "instruction_bytes = 1000000000000"),
        ("fp32_width = 2", "fp32_width = 1000000000000"),
        ("chips_per_machine = 4", "chips_per_machine = 4\nswitch = 1000000000000"),
        ("fixed_tile_bytes = 3874", "fixed_tile_bytes = 1000000000000"),
        ("fixed_tile_bytes = 3874", "fixed_tile_bytes = 638976"),
    ],
)
def test_values_outside_their_range(old: str, new: str) -> None:
    assert old in _text()
    with pytest.raises(TargetValueError, match="SNNC-E305"):
        parse_target(_text().replace(old, new), "x.toml")
