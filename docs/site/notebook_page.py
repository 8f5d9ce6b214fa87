"""A notebook as a page of Markdown: what it says, its code, and what the code printed."""

from __future__ import annotations

import json
from pathlib import Path


def page_of(notebook: Path) -> str:
    """Return a page with the cells of a notebook in their order.

    Printed text follows its code, marked as output. The page links the notebook itself, which stands next to it.
    """
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
