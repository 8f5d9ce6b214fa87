"""Sources of a project are compiled separately."""

from snnc.backends.toolchain import objects


def test_of_sources_that_a_project_lacks_none_is_compiled(tmp_path):
    (tmp_path / "network.cpp").touch()
    assert objects.sources_in(tmp_path, ("native_session.cpp", "network.cpp")) == ["network.cpp"]
