"""The additions of docs/extending.md work as written, and touch only the files listed there."""

import re

import pytest
from extended import PAGE, ROOT, extended, section, tried

TITLES = ["A neuron", "A pass", "A machine", "A loss", "An ONNX operator"]


@pytest.mark.parametrize("title", TITLES)
def test_what_a_section_adds_works(title, tmp_path):
    added = section(title)
    assert len(added.files) <= 3
    place = extended(tmp_path / "site", added.files)
    where = tried(place, "import snnc; print(snnc.__file__)")
    assert where.startswith(str(place))
    tried(place, added.tried, ROOT / "tests" / "common")


@pytest.mark.parametrize("title", TITLES)
def test_without_what_a_section_adds_its_code_fails(title, tmp_path):
    place = extended(tmp_path / "site", {})
    with pytest.raises(AssertionError, match="Error"):
        tried(place, section(title).tried, ROOT / "tests" / "common")


def test_the_page_names_files_that_exist():
    named = re.findall(r"`((?:api|backends|compiler|frontends)/[\w/]+\.(?:py|toml))`", PAGE.read_text())
    new = {path for title in (*TITLES, "A backend") for path in section(title).files}
    assert [path for path in named if path not in new and not (ROOT / path).is_file()] == []
