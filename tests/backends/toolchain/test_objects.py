"""Sources of a project are compiled separately."""

from snnc.backends.toolchain import objects


def test_of_sources_that_a_project_lacks_none_is_compiled(tmp_path):
    (tmp_path / "network.cpp").touch()
    assert objects.sources_in(tmp_path, ("native_session.cpp", "network.cpp")) == ["network.cpp"]


def test_no_header_is_precompiled_for_a_clang_that_another_command_starts(tmp_path, monkeypatch):
    """For example ``python -m ziglang c++``: the first word alone does not say which compiler it is."""
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\n[ "$1" = --version ] && echo launcher 1.0 || echo clang version 17.0\n')
    launcher.chmod(0o755)
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", f"{launcher} c++")
    assert objects.precompiled(tmp_path, [], [], [str(launcher), "c++", "-O1"]) == []
