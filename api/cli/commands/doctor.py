"""``snnc doctor``: list available and missing tools."""

from __future__ import annotations

from typing import Annotated

import typer

from snnc.cli.console import result, result_json


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the tools that snnc can use on this machine, and how to install the missing ones.

    Example: snnc doctor
    """
    from snnc.checks.machine import examine

    findings = examine()
    if as_json:
        result_json([vars(finding) for finding in findings])
        return
    for finding in findings:
        result(f"{'ok     ' if finding.found else 'missing'}  {finding.name}: {finding.detail}")
        if not finding.found:
            result(f"         {finding.hint}")
