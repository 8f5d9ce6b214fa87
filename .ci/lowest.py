"""Print pip's constraints for the lowest version of every dependency that pyproject.toml declares."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())
extras = [lines for extra, lines in project["project"]["optional-dependencies"].items() if extra != "frameworks"]  # its versions are fixed
declared = [*project["build-system"]["requires"], *project["project"]["dependencies"], *(line for lines in extras for line in lines)]
lowest: dict[str, str] = {}
for line in declared:
    name, version = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)(?:,<[\w.]+)?", line).groups()  # type: ignore[union-attr]  # no other form is declared
    if lowest.setdefault(name, version) != version:
        raise SystemExit(f"pyproject.toml declares two versions of {name}: {lowest[name]} and {version}.")
print("\n".join(f"{name}=={version}" for name, version in lowest.items()))
