"""The size of the cache is limited: least recently used files are deleted, except those that may be about to be read."""

import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snnc.backends.toolchain.cache import GRACE, cached_file, record_digest, trim


def entry(cache, name, size, age):
    """An entry of `size` bytes that was used `age` seconds ago."""
    (cache / name).mkdir(parents=True)
    (cache / name / "file").write_bytes(bytes(size))
    os.utime(cache / name, (time.time() - age,) * 2)


def left(cache):
    return {str(p.relative_to(cache)) for p in cache.rglob("*") if p.is_dir()} - {"codelets", "programs"}


def asked_long_ago(cache):
    os.utime(cache / ".trimmed", (0, 0))


def test_what_was_used_least_recently_goes_until_the_rest_is_small_enough(tmp_path):
    for age, name in enumerate(["object-a", "codelets/b", "precompiled-c", "project-d", "programs/e"]):
        entry(tmp_path, name, 100, 2 * GRACE - age)
    entry(tmp_path, "emulator-f", 1000, 3 * GRACE)
    assert trim(tmp_path, limit=300) == ["object-a", "b"]
    assert left(tmp_path) == {"precompiled-c", "project-d", "programs/e", "emulator-f"}
    assert trim(tmp_path, limit=0) == []  # one has just looked
    asked_long_ago(tmp_path)
    assert set(trim(tmp_path, limit=0)) == {"precompiled-c", "project-d", "e"}
    assert left(tmp_path) == {"emulator-f"}


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 200)), max_size=8), st.integers(0, 200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_nothing_that_was_used_within_the_grace_goes_and_no_more_than_needed(tmp_path_factory, entries, limit):
    cache = tmp_path_factory.mktemp("cache")
    for number, (size, age) in enumerate(entries):
        entry(cache, f"object-{number}", size, age)
    gone = {int(name.split("-")[1]) for name in trim(cache, limit=limit, grace=100)}
    total = sum(size for number, (size, _) in enumerate(entries) if number not in gone)
    old = [number for number, (_, age) in enumerate(entries) if age >= 100]
    assert gone <= set(old)
    assert total <= limit or gone == set(old)
    if gone:
        newest = min(gone, key=lambda number: entries[number][1])
        assert all(entries[number][1] <= entries[newest][1] for number in set(old) - gone)
        assert total + entries[newest][0] > limit


def test_asking_for_something_makes_it_the_last_that_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path))
    for name, age in (("precompiled-a", 3 * GRACE), ("precompiled-b", 2 * GRACE)):
        entry(tmp_path, name, 100, age)
        record_digest(tmp_path / name)
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    cached_file("precompiled-a", "file", lambda folder: pytest.fail("it is there"))
    assert trim(tmp_path, limit=100) == ["precompiled-b"]
    built = cached_file("precompiled-b", "file", lambda folder: (folder / "file").write_text("again"))
    assert built.read_text() == "again"


def test_building_looks_at_what_the_cache_holds_and_clears_what_ended_builds_left(tmp_path, monkeypatch):
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path))
    for name in (".project-a-12345678", "codelets/.b-12345678"):
        entry(tmp_path, name, 1, 2 * GRACE)
    entry(tmp_path, ".project-c-12345678", 1, 0)
    cached_file("object-d", "file", lambda folder: (folder / "file").write_text("new"))
    assert left(tmp_path) == {".project-c-12345678", "object-d"}


def test_a_file_that_another_process_reads_is_not_pulled_away(tmp_path):
    entry(tmp_path, "project-a", 10, 2 * GRACE)
    with (tmp_path / "project-a" / "file").open("rb") as opened:
        assert trim(tmp_path, limit=0) == ["project-a"]
        assert opened.read() == bytes(10)
