"""Other distributions' entry points are found wherever they lie; where there are none, for nothing."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from acp_core.protocols.entry_points import named

GROUP = "acp.tests.group"
TEXT = f"[console_scripts]\nx = x:x\n\n[{GROUP}]\nmine = module:NAME\n"
METADATA = "Metadata-Version: 2.1\nName: mine\nVersion: 1\n"


def found() -> list[str]:
    return [entry.value for entry in named(GROUP)]


def put(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(METADATA)
    (folder / "PKG-INFO").write_text(METADATA)
    (folder / "entry_points.txt").write_text(TEXT)


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("site", "mine-1.dist-info"),
        ("site", "Mine-1.DIST-INFO"),
        ("site", "mine.egg-info"),
        ("mine-1.egg", "EGG-INFO"),
    ],
)
def test_in_a_folder(
    place: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / place / folder)
    assert found() == []
    monkeypatch.syspath_prepend(tmp_path / place)
    assert found() == ["module:NAME"]


def test_in_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "mine-1.dist-info")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert found() == ["module:NAME"]


def test_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "mine.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("mine-1.dist-info/METADATA", METADATA)
        file.writestr("mine-1.dist-info/entry_points.txt", TEXT)
    monkeypatch.syspath_prepend(archive)
    assert found() == ["module:NAME"]


def test_from_a_finder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an editable install may have one: its distributions lie in no folder of ``sys.path``."""
    from importlib.metadata import MetadataPathFinder, PathDistribution

    put(tmp_path / "elsewhere" / "mine-1.dist-info")

    class Finder(MetadataPathFinder):
        @classmethod
        def find_distributions(cls, context: object = None) -> list[PathDistribution]:
            return [PathDistribution(tmp_path / "elsewhere" / "mine-1.dist-info")]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert found() == ["module:NAME"]


def test_what_cannot_be_read_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.egg-info").write_text(METADATA)
    (tmp_path / "site" / "other-1.dist-info" / "entry_points.txt").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "gone")
    assert found() == []


def test_where_there_are_none_nothing_is_imported_for_them() -> None:
    code = (
        "import sys\n"
        "sys.meta_path = [f for f in sys.meta_path if 'importlib' in f.__module__]\n"
        "from acp_core.protocols.entry_points import named\n"
        f"print(list(named({GROUP!r})), 'importlib.metadata' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["[]", "False"]
