"""The page in headless Chromium: clicks, keys, both themes, small and large machines, without console messages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from browser import Opened, closed_browser, opened, serious  # noqa: F401  # a fixture that closes the browser
from plans import made_plan
from wide import examples

from snnc.report import Subject, write
from snnc.report.recording import Recording, Train

EVIL = "</script><img src=x onerror=alert(1)>{{ 7*7 }}"


def recorded(layers: int) -> Recording:
    rng = np.random.default_rng(0)
    trains = []
    for n in range(layers):
        steps, samples, ids = np.nonzero(rng.random((20, 2, 30)) < 0.2)
        trains.append(Train(f"p{n}_o0", f"p{n}", f"layer {n}", 30, steps, samples, ids))
    return Recording(20, 2, "by hand", tuple(trains))


def profile(plan: object) -> dict[str, object]:
    iterations = plan.iterations  # type: ignore[attr-defined]
    tiles = plan.target.tiles  # type: ignore[attr-defined]
    step = {"name": "F2 neurons", "executions": iterations, "compute_cycles_busiest": 9000.0, "sync_cycles": 5.0, "exchange_cycles": 30.0}
    return {"steps": [step], "tiles_in_all": {"compute_cycles": [70, tiles], "memory": [5000, tiles]}}


def page(folder: Path, subject: Subject, other: Subject | None = None) -> Path:
    (folder / "report.html").write_bytes(write(subject, "html", other))
    return folder / "report.html"


def colours(one: Opened, canvas: str = "#map") -> dict[str, int]:
    return one.colours(canvas)


def silent(one: Opened) -> None:
    assert one.said == []
    assert all(url.startswith(("file:", "data:")) for url in one.loads)
    assert len(one.loads) <= 2


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_of_a_small_machine_works(tmp_path: Path, dark: bool) -> None:
    plan = made_plan(layers=3)
    file = page(tmp_path, Subject(plan, {}, profile(plan), recorded(3)))
    with opened(file, dark=dark) as one:
        views = one.page.locator("#views button").all_inner_texts()
        assert views == ["layer", "memory", "compute", "exchange", "memory, emulated", "compute, emulated"]
        seen = [colours(one)]
        for name in ("memory", "compute"):
            one.page.click(f"#views [data-view={name}]")
            assert one.page.get_attribute(f"#views [data-view={name}]", "aria-pressed") == "true"
            seen.append(colours(one))
        assert all(a != b for a, b in pairwise(seen)), "every view looks different"
        assert one.page.locator("#rasters .raster").count() == 3
        assert len(colours(one, ".raster canvas")) > 1
        assert one.page.locator(".lane.thin").count() > 0
        assert one.page.locator(".warning").count() == 3
        silent(one)


def test_choosing_a_layer_lights_its_tiles_everywhere(tmp_path: Path) -> None:
    with opened(page(tmp_path, Subject(made_plan(layers=3), {}))) as one:
        plain = colours(one)
        one.page.click("g.box[data-layer='1']")
        lit = colours(one)
        assert lit != plain
        assert one.page.locator("tr.on").get_attribute("data-layer") == "1"
        assert one.page.locator("g.box.on").get_attribute("data-layer") == "1"
        assert one.page.inner_text("#tip").startswith("layer 1: ")
        assert "predicted" in one.page.inner_text("#tip")
        one.page.click("tr[data-layer='1']")
        assert colours(one) == plain
        one.page.focus("tr[data-layer='2']")
        one.page.keyboard.press("Enter")
        assert one.page.locator("g.box.on").get_attribute("data-layer") == "2"
        silent(one)


def test_the_map_tells_of_the_tile_under_the_pointer_and_the_cursor(tmp_path: Path) -> None:
    plan = made_plan(layers=3)
    with opened(page(tmp_path, Subject(plan, {}))) as one:
        one.page.locator("#map").scroll_into_view_if_needed()
        box = one.page.locator("#map").bounding_box()
        one.page.mouse.move(box["x"] + 3, box["y"] + 3)
        hint = one.page.inner_text("#hover")
        assert hint.startswith("Tile 0: layer 0, 4 neurons.")
        assert f"{plan.tile_memory[0]:,} of 638,976 bytes" in hint
        assert f"compute {plan.tile_cycles['compute'][0]:,}" in hint
        one.page.mouse.click(box["x"] + 3, box["y"] + 3)
        assert one.page.locator("tr.on").get_attribute("data-layer") == "0"
        one.page.focus("#map")
        for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
            one.page.keyboard.press(key)
        assert one.page.inner_text("#tip").startswith("Tile 46:")
        silent(one)


def test_zoom_of_map_and_graph(tmp_path: Path) -> None:
    with opened(page(tmp_path, Subject(made_plan(layers=12), {}))) as one:
        whole, box = colours(one), one.page.get_attribute("#flow", "viewBox")
        one.page.click("[data-zoom=in]")
        one.page.click("[data-flow=in]")
        assert colours(one) != whole
        assert one.page.get_attribute("#flow", "viewBox") != box
        one.page.click("[data-zoom=fit]")
        one.page.click("[data-flow=fit]")
        assert colours(one) == whole
        assert one.page.get_attribute("#flow", "viewBox") == box
        silent(one)


def test_the_timeline_marks_the_busiest_tile_and_tables_sort(tmp_path: Path) -> None:
    with opened(page(tmp_path, Subject(made_plan(layers=3), {}))) as one:
        plain = colours(one)
        one.page.locator("[data-mark]").nth(1).click()
        assert colours(one) != plain
        assert one.page.inner_text("#tip").startswith("Tile 1:")
        one.page.locator(".heads .block").first.hover()
        assert "cycles predicted" in one.page.inner_text("#hover")
        head = one.page.locator("table:has(tr.pick) th").nth(2)
        order = []
        for _ in range(2):
            head.click()
            order.append(one.page.locator("tr.pick").evaluate_all("rows => rows.map(r => r.dataset.layer)"))
        assert sorted(order[0]) == ["0", "1", "2"]
        one.page.locator("#matrix").scroll_into_view_if_needed()
        box = one.page.locator("#matrix").bounding_box()
        one.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        assert "per step (predicted)" in one.page.inner_text("#hover")
        silent(one)


@pytest.mark.wide
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_of_23552_tiles_with_200_layers_in_replicas_works(tmp_path: Path, dark: bool) -> None:
    plan = made_plan("pod16", layers=200, replicas=2)
    with opened(page(tmp_path, Subject(plan, {}, None, recorded(30))), dark=dark, width=1500) as one:
        assert one.page.locator("#views button").all_inner_texts() == ["layer", "memory", "compute", "exchange", "IPU", "batch group"]
        assert one.page.evaluate("document.getElementsByTagName('*').length") < 12_000, "tiles are no elements"
        seen = {}
        for name in ("layer", "memory", "IPU", "batch group"):
            one.page.click(f"#views [data-view='{name}']")
            seen[name] = colours(one)
        assert len({tuple(sorted(c.items())) for c in seen.values()}) == 4
        box = one.page.locator("#map").bounding_box()
        assert box["width"] > 1100
        assert box["width"] <= 1500
        one.page.click("#views [data-view=layer]")
        one.page.evaluate("document.querySelector('tr[data-layer=\"150\"]').click()")
        assert "in 2 batch groups" in one.page.inner_text("#tip")
        assert one.page.locator("#chips").count() == 1
        assert one.page.locator("#rasters .raster").count() == 24
        one.page.click("text=show all 30 layers")
        assert one.page.locator("#rasters .raster").count() == 30
        assert one.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than the page"
        silent(one)


def test_two_plans_stand_side_by_side(tmp_path: Path) -> None:
    first, second = made_plan(layers=2), made_plan("pod4", layers=4, replicas=2, seed=3)
    with opened(page(tmp_path, Subject(first, {}), Subject(replace(second, name="the other"), {}))) as one:
        assert one.page.locator("canvas.compared").count() == 2
        assert "times as fast" in one.page.inner_text(".verdict")
        before = [colours(one, f"div:nth-child({n}) > .map canvas.compared") for n in (1, 2)]
        one.page.click("#comparedviews [data-view=compute]")
        after = [colours(one, f"div:nth-child({n}) > .map canvas.compared") for n in (1, 2)]
        assert before[0] != after[0]
        assert before[1] != after[1]
        silent(one)


@pytest.mark.parametrize(("times", "limit"), [(1, "limit of a tile"), (100, "times as high")])
def test_the_limit_of_a_tile_is_drawn_or_told(tmp_path: Path, times: int, limit: str) -> None:
    plan = made_plan(layers=2)
    small = replace(plan, target=replace(plan.target, tile_bytes=times * plan.target.tile_bytes))
    with opened(page(tmp_path, Subject(small, {}))) as one:
        assert limit in one.page.inner_text(".occupancy .plot")
        heights = one.page.locator(".occupancy .column").evaluate_all(
            "all => all.map(c => Array.from(c.querySelectorAll('span')).reduce((sum, s) => sum + s.getBoundingClientRect().height, 0))"
        )
        assert 0.2 < max(heights) / 240 < 1
        silent(one)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    plan = replace(made_plan(layers=2, label=EVIL), name=EVIL)
    trains = tuple(replace(t, label=EVIL) for t in recorded(2).trains)
    subject = Subject(plan, {"inputs": [{"id": "x0", "label": EVIL}]}, profile(plan), replace(recorded(2), trains=trains))
    with opened(page(tmp_path, subject, subject)) as one:
        one.page.click("g.box[data-layer='1']")
        for name in ("memory", "exchange", "layer"):
            one.page.click(f"#views [data-view={name}]")
        assert one.page.locator("img").count() == 0
        assert one.page.locator("script").count() == 2
        assert one.page.inner_text("h1") == EVIL
        assert EVIL in one.page.inner_text("#tip")
        silent(one)


@pytest.mark.parametrize("width", [420, 800])
def test_narrow_screens_need_no_sideways_scrolling(tmp_path: Path, width: int) -> None:
    with opened(page(tmp_path, Subject(made_plan(layers=5), {}, None, recorded(2))), width=width) as one:
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
        silent(one)


def test_the_page_of_64_ipus_is_below_a_megabyte(tmp_path: Path) -> None:
    """Without ``--wide``, the page of 16 IPUs is below 350,000 bytes.

    As in a plan for eight IPUs that snnc made, ten tiles in a row hold the same bytes, and cycles have some hundred values.
    """
    machine, limit = examples(("pod16", 350_000), ("pod64", 1_000_000))
    plan, rng = made_plan(machine, layers=12, replicas=4, batch=64), np.random.default_rng(0)
    tiles = plan.target.tiles
    memory = {name: tuple(np.repeat(rng.integers(1000, 60000, tiles // 10 + 1), 10)[:tiles].tolist()) for name in plan.memory}
    cycles = {kind: tuple(rng.choice(rng.integers(1000, 200000, 200), tiles).tolist()) for kind in plan.tile_cycles}
    plan = replace(plan, memory=memory, tile_cycles=cycles)
    file = page(tmp_path, Subject(plan, {}))
    assert file.stat().st_size < limit
    with opened(file) as one:
        one.page.focus("#map")
        one.page.keyboard.press("ArrowRight")
        tip = one.page.inner_text("#tip")
        assert f"{plan.tile_memory[1]:,} of 638,976 bytes" in tip
        assert f"compute {cycles['compute'][1]:,}" in tip
        silent(one)


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious_on_the_page(tmp_path: Path, dark: bool) -> None:
    plan = made_plan("m2000", layers=3)
    file = page(tmp_path, Subject(plan, {}, profile(plan), recorded(3)))
    with opened(file, dark=dark, width=420 if dark else 1300) as one:
        assert serious(one) == []
        pictures = one.page.locator("canvas, svg[role], [role=img]")
        assert pictures.count() > 8
        assert [p for p in pictures.all() if not p.get_attribute("aria-label")] == []


def test_the_printed_page_has_all_tables_and_no_buttons(tmp_path: Path) -> None:
    with opened(page(tmp_path, Subject(made_plan(layers=3), {})), dark=True) as one:
        one.page.emulate_media(media="print", color_scheme="dark")
        one.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert not one.page.locator(".tools").first.is_visible()
        assert one.page.get_by_text("compute, sync, exchange and bytes in", exact=False).is_visible()
        assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        silent(one)
