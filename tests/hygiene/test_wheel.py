"""What people install holds everything that acp needs when it runs, and nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.hygiene.sources import PACKAGES, ROOT

hatchling = pytest.importorskip("hatchling.builders.wheel", reason="needs hatchling")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    [wheel] = hatchling.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources() -> set[str]:
    """Every file of the packages that is not made by running them."""
    return {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_of_the_packages_is_in_it(names: set[str]) -> None:
    kinds = {Path(name).suffix for name in sources()}
    assert {".py", ".tcss", ".md"} <= kinds  # code, stylesheets, the skill's texts
    assert sources() - names == set()


def test_nothing_else_is_in_it(names: set[str]) -> None:
    others = {name for name in names - sources() if ".dist-info/" not in name}
    assert {name.partition(".data/data/")[2] for name in others} == {"share/man/man1/acp.1"}


def test_the_licence_comes_with_it(names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_source_distribution_holds_what_the_tests_and_pages_need() -> None:
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="needs hatchling")
    held = {
        each.distribution_path for each in sdist.SdistBuilder(str(ROOT)).recurse_included_files()
    }
    tops = {*PACKAGES, "tests", "docs", "screenshots", ".ci"}
    assert {name.partition("/")[0] for name in held} >= {
        *tops, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
    }  # fmt: skip
    assert sources() <= held
    samples = {"tests/upgrade/sample-0.2.1.tar.xz"}
    assert {".ci/constraints.txt", "docs/acp.1", *samples} <= held
    assert [name for name in held if "__pycache__" in name or "/." in name] == []
