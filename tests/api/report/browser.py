"""A headless Chromium for tests of pages."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Find the browser; where SNNC_TEST_BROWSER names one, as in continuous integration, it has to be there."""
    named = os.environ.get("SNNC_TEST_BROWSER")
    found = named or next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("there is no Chromium on this machine; .ci/browser installs one")
    if named:
        importlib.import_module("playwright")
    else:
        pytest.importorskip("playwright", reason="playwright is not installed; ./test installs it")
    return found


COUNT_COLOURS = """selector => {
    const canvas = document.querySelector(selector), found = {};
    const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const points = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    for (const point of points) found[point & 0xffffff] = (found[point & 0xffffff] || 0) + 1;
    return found;
}"""


class Opened:
    """An open page; everything that it says on its console or tries to load is noted."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.loads: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.loads.append(request.url))

    def colours(self, canvas: str) -> dict[str, int]:
        """How often each colour (red, green, blue) is on a canvas."""
        found: dict[str, int] = self.page.evaluate(COUNT_COLOURS, canvas)
        return found


def serious(one: Opened) -> list[tuple[str, str]]:
    """What axe-core finds serious or critical on an open page, each with its first place."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed; ./test installs it")
    found = axe.Axe().run(one.page).response["violations"]
    return [(v["id"], v["nodes"][0]["target"][0]) for v in found if v["impact"] in ("serious", "critical")]


@cache
def launched(path: str) -> tuple[Any, Any]:
    """Start Playwright and a browser, which all tests of a file share."""
    from playwright.sync_api import sync_playwright

    play = sync_playwright().start()
    return play, play.chromium.launch(executable_path=path, args=["--no-sandbox"])


@pytest.fixture(scope="module", autouse=True)
def closed_browser() -> Iterator[None]:
    """Close the browser after the last test of a file."""
    yield
    if launched.cache_info().currsize:
        play, browser = launched(chromium())
        browser.close()
        play.stop()
        launched.cache_clear()


@contextmanager
def opened(file: Path, *, dark: bool = False, width: int = 1300) -> Iterator[Opened]:
    """Open a file without a network."""
    _, browser = launched(chromium())
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", offline=True) as context:
        context.set_default_timeout(8000)
        found = Opened(context.new_page())
        found.page.goto(file.as_uri())
        yield found
