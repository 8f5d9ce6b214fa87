"""Make the documentation's picture of a report with snnc and Chromium: ``python docs/images/make_images.py``.

Needs the packages of ``snnc[test]`` and a browser, whose path ``.ci/browser`` prints.
"""

from __future__ import annotations

import io
import subprocess
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import snnc
from snnc.driver.stages import planned
from snnc.options.compile_options import options
from snnc.report import render, summarise

HERE = Path(__file__).parent
WIDE, HIGH = 1300, 1510


def page() -> str:
    """Return the report, as HTML, of a network of three recurrent layers."""
    layers = [part for width in (512, 512, 256) for part in (snnc.Dense(width), snnc.Recurrent(snnc.LIF(beta=0.9)))]
    net = snnc.Sequential(700, *layers, snnc.Dense(20), snnc.LI(beta=0.9), name="spoken digits: 700-512-512-256-20, recurrent")
    compiled = planned(net.graph(), options("gc200", steps=100, batch=64, loss="ce_mean_membrane"))
    assert compiled.plan is not None
    return render(compiled.plan, "html", program=summarise(compiled.program))


def screenshot(html: str) -> bytes:
    """Return a PNG of the top of the page."""
    browser_path = subprocess.run([HERE.parents[1] / ".ci" / "browser"], capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        file = Path(folder) / "report.html"
        file.write_text(html, encoding="utf-8")
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": WIDE, "height": HIGH})
        opened.goto(file.as_uri())
        png = opened.screenshot()
        browser.close()
    return png


def main() -> None:
    picture = Image.open(io.BytesIO(screenshot(page()))).convert("RGB")
    picture.quantize(96, dither=Image.Dither.NONE).save(HERE / "report.png", optimize=True)


if __name__ == "__main__":
    main()
