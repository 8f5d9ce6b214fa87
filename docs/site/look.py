"""Check the built site in Chromium: ``python docs/site/look.py SITE CHROMIUM [--all] [--pictures FOLDER]``.

A page of each kind is opened in a wide window with the light theme and in a narrow window with the dark theme; with --all, every page is
opened in all four combinations. A page fails if axe-core finds a serious or critical violation, if it is wider than the screen, or if the
browser reports an error.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import sys
import threading
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

PAGES = (
    *("", "contents/", "howto/install/", "howto/losses/", "reference/python/networks/", "reference/python/compiling/", "reference/cli/"),
    *("examples/", "examples/digits/", "explanation/how-it-works/", "decisions/0001-poplar-program/", "map/", "tutorial/own-network/"),
)
"""Addresses of the pages that are checked without --all: one of each kind."""
FORMS = ((1300, "light"), (380, "dark"))
ALL_FORMS = (*FORMS, (1300, "dark"), (380, "light"))
"""Forms in which a page is opened, as (width of the window in pixels, theme)."""
GRAVE = ("serious", "critical")
"""Impacts of axe-core's violations that count as faults."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve a folder without logging requests."""

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def faults(page: Page, address: str, picture: Path | None) -> list[str]:
    """Open one page and return its faults."""
    messages: list[str] = []

    def note(error: object) -> None:
        messages.append(f"error: {error}")

    page.on("pageerror", note)
    answer = page.goto(address)
    if answer is None or not answer.ok:
        return ["there is no such page"]
    if picture is not None:
        page.screenshot(path=picture)
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wider > 0:
        messages.append(f"{wider} pixels wider than the screen")
    for fault in Axe().run(page).response["violations"]:
        if fault["impact"] in GRAVE:
            where = "; ".join(str(node["target"][0]) for node in fault["nodes"][:3])
            messages.append(f"{fault['id']} ({fault['impact']}, {len(fault['nodes'])} times): {fault['help']}: {where}")
    page.remove_listener("pageerror", note)
    return messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("chromium")
    parser.add_argument("--all", action="store_true", help="check all pages instead of one of each kind")
    parser.add_argument("--pictures", type=Path, help="folder for a screenshot of each page")
    arguments = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(arguments.site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages, forms = PAGES, FORMS
    if arguments.all:
        pages = tuple(sorted(f"{p.parent.relative_to(arguments.site)}/".removeprefix("./") for p in arguments.site.rglob("index.html")))
        forms = ALL_FORMS
    bad = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
        for width, scheme in forms:
            page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()  # type: ignore[arg-type]
            for path in pages:
                name = f"{path.strip('/').replace('/', '_') or 'front'}-{width}-{scheme}.png"
                picture = arguments.pictures / name if arguments.pictures else None
                for fault in faults(page, f"http://127.0.0.1:{server.server_port}/{path}", picture):
                    print(f"/{path} ({width} pixels, {scheme}): {fault}", flush=True)
                    bad += 1
            page.context.close()
        browser.close()
    print(f"{len(pages)} pages in {len(forms)} forms: {bad} faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
