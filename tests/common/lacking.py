"""Test files that import a framework are skipped if it is not installed, as ./test reports; where it is required, they are errors."""

import os
import re

import pytest

MISSING = re.compile(r"ModuleNotFoundError: No module named '(torch|snntorch|norse|spikingjelly|onnxscript)\b")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    found = MISSING.search(str(report.longrepr)) if report.failed else None
    if found and not os.environ.get("SNNC_TEST_FRAMEWORKS"):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 1, f"Skipped: {found[1]} is not installed")
    return report
