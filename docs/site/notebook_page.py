"""Convert notebooks to Markdown pages: text, code, and the output of the code."""

from __future__ import annotations

import json
from pathlib import Path


def page_of(notebook: Path) -> str:
    """Return the cells of a notebook as a Markdown page; the printed text of a cell follows its code in a text block."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        printed = "".join(line for output in cell["outputs"] for line in output.get("text", ())).rstrip()
        if printed:
            parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"
