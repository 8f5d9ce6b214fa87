"""Run the notebooks of this folder and store their output in them, for the site: ``python docs/tutorial/make_notebooks.py``."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def run(notebook: Path) -> None:
    """Run the cells of a notebook in one namespace, in an empty folder, and store the printed text of each cell."""
    data = json.loads(notebook.read_text(encoding="utf-8"))
    scope: dict[str, Any] = {"__name__": "notebook"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(c for c in data["cells"] if c["cell_type"] == "code"):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), scope)
            text = printed.getvalue().splitlines(keepends=True)
            cell["execution_count"] = number + 1
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    notebook.write_text(json.dumps(data, indent=1, ensure_ascii=False) + os.linesep, encoding="utf-8")


if __name__ == "__main__":
    for file in sorted(Path(__file__).parent.glob("*.ipynb")):
        run(file)
