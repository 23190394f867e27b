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
    assert others == set()


def test_the_licence_comes_with_it(names: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
