"""Fixtures and options that all tests share."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import waiting  # noqa: F401 - before any import of NumPy
from host_flags import FLAGS, PROJECT_LEVEL
from hypothesis import settings
from lacking import pytest_make_collect_report  # noqa: F401
from quick import BUDGET, Budget, Quick, Seconds
from wide import WIDE, is_wide, unknown_cases

from snnc.backends.cpu import build as cpu_build
from snnc.backends.cuda import build as cuda_build
from snnc.backends.emulator.popc import DEFAULT_FLAGS
from snnc.backends.poplar import build as poplar_build
from snnc.compiler.tiles import mapper, remedies
from snnc.compiler.tiles.search import search
from snnc.compiler.tiles.search.search import Search

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("SNNC_HYPOTHESIS", "fixed"))
"""The same examples in every run; SNNC_HYPOTHESIS=search generates others."""

ROOT = Path(__file__).parents[1]
CODELET_FLAGS = "SNNC_CODELET_FLAGS"
LIBRARY_FLAGS = "SNNC_LIBRARY_FLAGS"
AS_FOR_USERS = ("end_to_end", "backends/emulator", "golden")
"""Folders whose tests need plans as for users, to compare predictions with emulations or hashes. All other tests pass with any plan."""
PRICE_PROMISING = Search._price_promising


def pytest_addoption(parser):
    parser.addoption("--wide", action="store_true", help="run the wide cases too: more of the same kind, for changes to the code they test")
    parser.addoption("--quick", action="store_true", help="start no test after 40 seconds, and leave out tests that took long before")
    parser.addoption("--budget", type=float, metavar="SECONDS", help="start no test after this many seconds; skip the others")


def pytest_configure(config):
    config.pluginmanager.register(Seconds(config))
    if config.getoption("--quick"):
        config.pluginmanager.register(Quick())
    seconds = config.getoption("--budget") or (BUDGET if config.getoption("--quick") else None)
    if seconds is not None:
        config.pluginmanager.register(Budget(seconds))
    _levels(config)


def _levels(config):
    """Unless all cases run, compile programs that run for milliseconds without optimisation; results must not depend on it."""
    if config.getoption("--wide"):
        os.environ.setdefault("SNNC_TEST_LEVEL", "-O3")
        os.environ[WIDE] = "1"
    else:
        os.environ.setdefault(CODELET_FLAGS, DEFAULT_FLAGS.replace("-O2", "-O0"))
        os.environ.setdefault(LIBRARY_FLAGS, "-O0 -Wall -Wextra")  # half the CPU time of -O2; the programs of tests are small


@pytest.fixture(scope="module", autouse=True)
def _short_searches(request):
    """Do not improve plans, and price only one placement that fits; search one second, not three, for remedies of a misfit.

    Not in `AS_FOR_USERS`, and not if a test requests more.
    """
    folder = request.path.parent.relative_to(ROOT / "tests").as_posix()
    with pytest.MonkeyPatch.context() as patch:
        if folder not in AS_FOR_USERS and not request.config.getoption("--wide"):
            patch.setattr(mapper, "EFFORT", 0)
            patch.setattr(remedies, "SECONDS", 1.0)
            patch.setattr(Search, "_price_promising", _price_until_one_fits)
        yield


def _price_until_one_fits(search, candidates, least, *, local_relays):
    """Price placements in the order of their lower bounds until one fits, and no other: a replacement of `Search._price_promising`."""
    return any(search.price(placement, local_relays=local_relays) is not None for placement in candidates)


@pytest.fixture(scope="session", autouse=True)
def _one_level(request):
    """Compile what differs between projects without optimisation unless all cases run; checks of CUDA programs share objects."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--wide"):
            patch.setattr(poplar_build, "SMALL_TABLES", sys.maxsize)
            patch.setattr(cpu_build, "PROJECT_LEVEL", "-O0")
            patch.setenv(PROJECT_LEVEL, cpu_build.PROJECT_LEVEL)
            patch.setattr(cuda_build, "HOST_FLAGS", tuple("-O0" if flag == "-O1" else flag for flag in cuda_build.HOST_FLAGS))
            patch.setenv(FLAGS, " ".join(cuda_build.HOST_FLAGS))
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory):
    """Keep the projects that tests compile out of the list of those that this user trusts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks():
    """Leave the files of tests to the page cache; only a power failure could tell the difference."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture
def short_local_search(monkeypatch):
    """Price all promising placements, and improve the best one by six changes, not eighty."""
    monkeypatch.setattr(mapper, "EFFORT", 1)
    monkeypatch.setattr(Search, "_price_promising", PRICE_PROMISING)


@pytest.fixture
def plans_as_for_users(monkeypatch):
    """Improve plans as long as for users."""
    monkeypatch.setattr(mapper, "EFFORT", search.EFFORT)


@pytest.fixture(scope="module")
def cpu_projects_as_for_users():
    """Compile the networks of a file's CPU projects as for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_build, "PROJECT_LEVEL", cpu_build.LEVEL)
        yield


@pytest.fixture(scope="module")
def codelets_as_for_users():
    """Compile the codelets of a file's tests as for users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(CODELET_FLAGS, raising=False)
        yield


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: item.path.parent != ROOT / "tests")  # so that no long test runs last while other workers wait
    if config.getoption("--wide"):
        return
    wide = [item for item in items if is_wide(item)]
    config.hook.pytest_deselected(items=wide)
    items[:] = [item for item in items if not is_wide(item)]


def pytest_collection_finish():
    """Exempt modules and thousands of tests from garbage collection, and collect less often: this saves 3 % of CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_collectreport(report):
    """Check that representative cases exist: here a file has all its tests, even if only some were selected."""
    unknown = unknown_cases(item for item in report.result if isinstance(item, pytest.Function))
    if unknown:
        raise pytest.UsageError(f"no such cases of tests: {', '.join(unknown)}")


@pytest.fixture(scope="session")
def root():
    """The checkout."""
    return ROOT


@pytest.fixture
def command(tmp_path):
    """Run the command line in a separate process, in an empty folder; returns the result of subprocess.run."""

    def call(*arguments, timeout=120, **environment):
        return subprocess.run(
            [sys.executable, "-c", "from snnc.cli.main import main; main()", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "100", **environment},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return call
