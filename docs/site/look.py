"""Check the built site in Chromium: ``python docs/site/look.py SITE CHROMIUM [--all] [--pictures FOLDER]``.

Each page is opened in a wide window with the light theme and in a narrow window with the dark theme. A page fails if axe-core finds a serious or
critical violation, if it is wider than the screen, or if the browser reports an error.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import sys
import threading
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, sync_playwright

PAGES = (
    *("", "contents/", "howto/install/", "howto/losses/", "reference/python/networks/", "reference/python/compiling/", "reference/cli/"),
    *("examples/", "examples/digits/", "explanation/how-it-works/", "decisions/0001-poplar-program/", "map/", "tutorial/own-network/"),
)
"""A page of each kind."""
FORMS = ((1300, "light"), (380, "dark"))
GRAVE = ("serious", "critical")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve a folder without logging requests."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def faults(browser: Browser, address: str, width: int, scheme: str, picture: Path | None) -> list[str]:
    """Open one page at a width and with a colour scheme, and return its faults."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page = context.new_page()
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    answer = page.goto(address)
    if answer is None or not answer.ok:
        return ["there is no such page"]
    if picture is not None:
        page.screenshot(path=picture)
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wider > 0:
        found.append(f"{wider} pixels wider than the screen")
    for fault in Axe().run(page).response["violations"]:
        if fault["impact"] in GRAVE:
            where = "; ".join(str(node["target"][0]) for node in fault["nodes"][:3])
            found.append(f"{fault['id']} ({fault['impact']}, {len(fault['nodes'])} times): {fault['help']}: {where}")
    context.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("chromium")
    parser.add_argument("--all", action="store_true", help="check all pages instead of one of each kind")
    parser.add_argument("--pictures", type=Path, help="folder for a screenshot of each page")
    given = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(given.site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = PAGES
    if given.all:
        pages = tuple(sorted(f"{p.parent.relative_to(given.site)}/".removeprefix("./") for p in given.site.rglob("index.html")))
    bad = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        for page in pages:
            for width, scheme in FORMS:
                name = f"{page.strip('/').replace('/', '_') or 'front'}-{width}-{scheme}.png"
                picture = given.pictures / name if given.pictures else None
                for fault in faults(browser, f"http://127.0.0.1:{server.server_port}/{page}", width, scheme, picture):
                    print(f"/{page} ({width} pixels, {scheme}): {fault}")
                    bad += 1
        browser.close()
    print(f"{len(pages)} pages in {len(FORMS)} forms: {bad} faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
