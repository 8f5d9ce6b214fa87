"""The additions of docs/extending.md work as written, and touch only the files listed there."""

import re

import pytest
from extended import PAGE, ROOT, extended, section, tried

from snnc.errors import SnncError

TITLES = ["A neuron", "A pass", "A machine", "A loss", "An ONNX operator"]


@pytest.mark.representative("all")
@pytest.mark.parametrize("titles", [TITLES, *([title] for title in TITLES)], ids=["all", *TITLES])
def test_what_a_section_adds_works(titles, tmp_path):
    sections = [section(title) for title in titles]
    assert all(len(added.files) <= 3 for added in sections)
    files = {path: text for added in sections for path, text in added.files.items()}
    assert len(files) == sum(len(added.files) for added in sections)
    place = extended(tmp_path / "site", files)
    codes = ["import snnc; print(snnc.__file__)", *(added.tried for added in sections)]
    where = tried(place, "".join(f"exec({code!r}, {{}})\n" for code in codes), ROOT / "tests" / "common")
    assert where.startswith(str(place))


@pytest.mark.parametrize("title", TITLES)
def test_without_what_a_section_adds_its_code_fails(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ImportError, SnncError)):
        exec(section(title).tried, {})


def test_the_page_names_files_that_exist():
    named = re.findall(r"`((?:api|backends|compiler|frontends)/[\w/]+\.(?:py|toml))`", PAGE.read_text())
    new = {path for title in (*TITLES, "A backend") for path in section(title).files}
    assert [path for path in named if path not in new and not (ROOT / path).is_file()] == []
