"""Cached files are used as they were built, and only where no other user could have written them."""

import os
import stat
import time

import pytest

from snnc.backends.toolchain import cache as entries
from snnc.backends.toolchain.cache import cached_file
from snnc.compiler.errors import UnsafeCacheError
from snnc.compiler.files import cache as cache_module
from snnc.compiler.files.cache import cache_dir

CONTENT = bytes(range(256)) * 8


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def build(folder):
    (folder / "lib").mkdir()
    (folder / "lib" / "x.so").write_bytes(CONTENT)
    (folder / "first.hpp").write_text("int f();\n")


def asked():
    """The library, and how often it was built."""
    built = []

    def fill(folder):
        built.append(folder)
        build(folder)

    return cached_file("project-a", "lib/x.so", fill), len(built)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGE = {
    "truncated": lambda folder: os.truncate(folder / "lib" / "x.so", 100),
    "empty": lambda folder: os.truncate(folder / "lib" / "x.so", 0),
    "flipped": lambda folder: flip(folder / "lib" / "x.so"),
    "another file flipped": lambda folder: flip(folder / "first.hpp"),
    "a file more": lambda folder: (folder / "second.hpp").write_text("int g();\n"),
    "a file less": lambda folder: (folder / "first.hpp").unlink(),
    "a link": lambda folder: ((folder / "first.hpp").unlink(), (folder / "first.hpp").symlink_to("lib/x.so")),
    "no digest": lambda folder: (folder / ".digest").unlink(),
    "another digest": lambda folder: flip(folder / ".digest"),
    "an empty digest": lambda folder: os.truncate(folder / ".digest", 0),
    "open to others": lambda folder: (folder / "lib" / "x.so").chmod(0o666),
    "a file in its place": lambda folder: (folder.rename(folder.with_name("project-b")), folder.write_text("")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_not_as_it_was_built_is_built_again(cache, damage):
    assert asked() == (cache / "project-a" / "lib" / "x.so", 1)
    assert asked()[1] == 0
    damage(cache / "project-a")
    library, built = asked()
    assert built == 1
    assert library.read_bytes() == CONTENT
    assert asked()[1] == 0


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_changed_after_it_was_read_is_built_again(cache, damage, monkeypatch):
    monkeypatch.setattr(entries, "SETTLED", 0)
    asked()
    assert asked()[1] == 0
    time.sleep(0.05)  # time stamps of a change are then others
    damage(cache / "project-a")
    assert asked()[1] == 1


def test_a_process_reads_an_entry_once(cache, monkeypatch):
    asked()
    read = []
    digest = entries._digest
    monkeypatch.setattr(entries, "_digest", lambda folder: read.append(folder) or digest(folder))
    assert asked()[1] == 0
    assert asked()[1] == 0
    assert len(read) == 2, "another change may have the time stamp of the build"
    monkeypatch.setattr(entries, "SETTLED", 0)
    for _ in range(3):
        assert asked()[1] == 0
    assert len(read) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("what", ["", "lib", "lib/x.so", ".digest"])
def test_what_belongs_to_another_user_is_built_again(cache, what):
    asked()
    os.chown(cache / "project-a" / what, 12345, -1)
    assert asked()[1] == 1
    assert asked()[1] == 0


def test_the_cache_is_closed_to_others_whatever_the_umask(cache):
    old = os.umask(0)
    try:
        asked()
    finally:
        os.umask(old)
    paths = [cache, *cache.rglob("*")]
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_dir()} == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in paths if p.is_file()} == {0o600}


def test_a_cache_of_ones_own_that_is_too_open_is_closed(cache):
    asked()
    cache.chmod(0o777)
    assert asked()[1] == 0
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_a_folder_that_is_used_for_other_things_too_keeps_its_rights(cache):
    cache.mkdir(mode=0o755)
    (cache / "thesis.tex").touch()
    assert cache_dir() == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o755
    cache.chmod(0o777)
    with pytest.raises(UnsafeCacheError, match=r"can be written by everybody; .*chmod go-w.*SNNC_CACHE="):
        cache_dir()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o777


def test_a_folder_where_everybody_may_put_files_is_no_cache(cache):
    cache.mkdir()
    cache.chmod(0o1777)
    with pytest.raises(UnsafeCacheError, match="can be written by everybody"):
        cache_dir()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o1777


def test_a_cache_that_others_can_replace_is_refused(cache, tmp_path):
    cache_dir()
    tmp_path.chmod(0o777)
    with pytest.raises(UnsafeCacheError, match=f"{str(tmp_path)!r} can be written by everybody"):
        cache_dir()
    tmp_path.chmod(0o1777)  # nobody but its owner can rename the cache
    assert cache_dir() == cache
    tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_cache_of_another_user_is_refused_also_through_a_link(cache, tmp_path, monkeypatch):
    asked()
    os.chown(cache, 12345, -1)
    (tmp_path / "link").symlink_to(cache)
    for chosen in (cache, tmp_path / "link"):
        monkeypatch.setenv("SNNC_CACHE", str(chosen))
        with pytest.raises(UnsafeCacheError, match="belongs to the user 12345"):
            asked()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_group_of_others_may_not_write(cache, monkeypatch):
    cache.mkdir()
    (cache / "thesis.tex").touch()
    os.chown(cache, -1, 12345)
    cache.chmod(0o770)
    with pytest.raises(UnsafeCacheError, match="can be written by the group 12345"):
        cache_dir()


def test_what_is_read_from_the_cache_as_text_is_what_was_written(cache):
    path = cache_dir() / "kernels" / "a.json"
    cache_module.write_checked(path, CONTENT)
    assert cache_module.read_checked(path, 1 << 20) == CONTENT
    assert cache_module.read_checked(path, 100) is None
    flip(path)
    assert cache_module.read_checked(path, 1 << 20) is None
