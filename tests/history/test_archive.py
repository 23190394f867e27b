"""A collaboration carried with its recording, and archives that mean no good."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Acp
from tests.loops.support import append, make
from tests.protocols.governed import making


def recorded(acp: Acp) -> Path:
    """Two recorded versions of a proposal."""
    folder = make(acp.home / "cache")
    for days in ("seven", "thirty"):
        (folder / "proposal.md").write_text(f"# Proposal\n\nKeep it for {days} days.\n")
        assert acp("record", "--once", str(folder)).returncode == 0
        time.sleep(0.02)
    append(folder, "server", "proposal_submitted", 1)
    assert acp("record", "--once", str(folder)).returncode == 0
    return folder


@pytest.fixture
def folder(acp: Acp) -> Path:
    return recorded(acp)


def exported(acp: Acp, folder: Path) -> Path:
    """An archive of the folder and its recording."""
    file = acp.home / "cache.acp.zip"
    made = acp("export", str(folder), "-o", str(file))
    assert made.returncode == 0, made.stderr
    return file


@pytest.fixture(scope="module")
def somebodys(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An archive of what `recorded` makes; made once."""
    home = tmp_path_factory.mktemp("somebody")
    return exported(Acp(home), recorded(Acp(home))).read_bytes()


@pytest.fixture
def archive(tmp_path: Path, somebodys: bytes) -> Path:
    """An archive that came from somebody."""
    file = tmp_path / "cache.acp.zip"
    file.write_bytes(somebodys)
    return file


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".acp.lock"
    }


def rewritten(archive: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The archive with other entries."""
    with zipfile.ZipFile(archive) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    change(entries)
    with zipfile.ZipFile(archive, "w") as new:
        for name, data in entries.items():
            new.writestr(name, data)
    return archive


def manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[dict[str, bytes]], None]:
    def apply(entries: dict[str, bytes]) -> None:
        told = json.loads(entries["manifest.json"])
        change(told)
        entries["manifest.json"] = json.dumps(told).encode()

    return apply


def test_files_times_and_history_arrive(acp: Acp, folder: Path, tmp_path: Path) -> None:
    archive = exported(acp, folder)
    before = acp("diff", str(folder), "proposal.md", "--versions", "--utc").stdout
    (tmp_path / "elsewhere").mkdir()
    elsewhere = Acp(tmp_path / "elsewhere")
    arrived = tmp_path / "elsewhere" / "mine"
    told = elsewhere("import", str(archive), str(arrived))
    assert told.returncode == 0, told.stderr
    assert contents(arrived) == {
        name: each for name, each in contents(folder).items() if name in contents(arrived)
    }
    assert {"events.jsonl", "protocol.json", "proposal.md", "review.md"} <= contents(arrived).keys()
    assert elsewhere("validate", str(arrived)).returncode == acp("validate", str(folder)).returncode
    after = elsewhere("diff", str(arrived), "proposal.md", "--versions", "--utc").stdout
    assert after == before and after.count("(recorded)") >= 2
    then = elsewhere("replay", str(arrived), "--at", "2", "--json")
    assert json.loads(then.stdout)["snapshot"]["key"] == str(arrived)
    again = elsewhere("import", str(archive), str(arrived))
    assert again.returncode == 2 and again.stderr.count("\n") == 1


def test_a_deliverable_beside_the_folder_comes_along(acp: Acp, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    folder = repo / "talks" / "cache"
    folder.parent.mkdir(parents=True)
    words = ["--objective", "Choose", "--completion", "Agreed", "--participant", "server"]
    words += ["--participant", "reader", "--primary-deliverable-type", "decision-memo"]
    words += ["--primary-deliverable-file", "docs/decision.md", "--deliverables-mode", "external"]
    made = acp("init", "--folder", str(folder), *words, "--repo-root", "../..")
    assert made.returncode == 0, made.stderr
    (repo / "deliverables" / "docs" / "decision.md").write_text("# Decision\n")
    (repo / "other.txt").write_text("not ours")
    file = tmp_path / "it.zip"
    assert acp("export", str(folder), "-o", str(file)).returncode == 0
    told = acp("import", str(file), str(tmp_path / "new"))
    assert told.returncode == 0, told.stderr
    assert (
        tmp_path / "new" / "deliverables" / "docs" / "decision.md"
    ).read_text() == "# Decision\n"
    assert (tmp_path / "new" / "talks" / "cache" / "events.jsonl").exists()
    assert not (tmp_path / "new" / "other.txt").exists()
    shown = acp("show", str(tmp_path / "new" / "talks" / "cache"), "--json").stdout
    assert "decision.md" in shown


def test_without_a_recording(acp: Acp, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "bare.zip"
    assert "no recording" in acp("export", str(folder), "-o", str(file), "--no-recording").stdout
    assert "no recording" in acp("import", str(file), str(tmp_path / "new")).stdout


EVIL = ("../evil", "/evil", "a/../../evil", "a//b", "", ".", "a\\..\\b", "a\0b", "./a")


@pytest.mark.parametrize("name", EVIL)
def test_no_name_leads_out(acp: Acp, archive: Path, tmp_path: Path, name: str) -> None:
    def evil(told: dict[str, Any]) -> None:
        told["files"].append({"name": name, "size": 1, "sha256": "x", "changed": 0})

    told = acp("import", str(rewritten(archive, manifest(evil))), str(tmp_path / "new"))
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and "Traceback" not in told.stderr
    assert not (tmp_path / "new").exists() and not (tmp_path / "evil").exists()


def _larger(entries: dict[str, bytes]) -> None:
    entries["tree/proposal.md"] += b"x" * 5_000_000


def _other(entries: dict[str, bytes]) -> None:
    entries["tree/proposal.md"] = entries["tree/proposal.md"].replace(b"thirty", b"twenty")


def _no_manifest(entries: dict[str, bytes]) -> None:
    del entries["manifest.json"]


def _deep(entries: dict[str, bytes]) -> None:
    entries["manifest.json"] = b"[" * 200_000


def _missing(entries: dict[str, bytes]) -> None:
    del entries["tree/proposal.md"]


@pytest.mark.parametrize(
    "change",
    [
        _larger, _other, _no_manifest, _deep, _missing,
        manifest(lambda told: told.update(schema="acp.archive/99")),
        manifest(lambda told: told.update(folder="../..")),
        manifest(lambda told: told.update(files="all")),
        manifest(lambda told: told["files"][0].update(size=10**18)),
    ],
)  # fmt: skip
def test_what_is_not_as_it_says_is_refused_and_leaves_nothing(
    acp: Acp, archive: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    told = acp("import", str(rewritten(archive, change)), str(tmp_path / "new"))
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and "Traceback" not in told.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_no_archive_at_all(acp: Acp, archive: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.zip"
    whole = archive.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 3):
        torn.write_bytes(whole[:size])
        told = acp("import", str(torn), str(tmp_path / "new"))
        assert told.returncode == 2 and told.stderr.count("\n") == 1
        assert not (tmp_path / "new").exists()
    assert acp("import", str(tmp_path / "nothing.zip")).returncode == 2


def _tampered(statement: str) -> Callable[[Path], None]:
    def tamper(path: Path) -> None:
        with sqlite3.connect(path) as db:
            db.execute(statement)
        db.close()

    return tamper


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE content SET packed = x'789c030000000001'",
        "UPDATE content SET size = size + 1",
        "UPDATE content SET size = 'x'",
        "UPDATE file SET name = CAST('../../../../../etc/passwd' AS BLOB) WHERE id = 1",
        "UPDATE version SET since = 'soon'",
        "DROP TABLE look",
        "PRAGMA application_id = 5",
    ],
)
def test_a_recording_that_was_tampered_with_is_not_taken_over(
    acp: Acp, archive: Path, tmp_path: Path, statement: str
) -> None:
    def tamper(entries: dict[str, bytes]) -> None:
        file = tmp_path / "recording.db"
        file.write_bytes(entries["recording"])
        _tampered(statement)(file)
        entries["recording"] = file.read_bytes()

    arrived = tmp_path / "new"
    told = acp("import", str(rewritten(archive, tamper)), str(arrived))
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and "Traceback" not in told.stderr
    assert "the files are unpacked" in told.stderr
    assert (arrived / "events.jsonl").exists()
    kept = json.loads(acp("recordings", "--json").stdout)["recordings"]
    assert "new" not in [each["name"] for each in kept]
    assert acp("show", str(arrived)).returncode == 0


def test_a_link_in_an_archive_becomes_a_file(acp: Acp, archive: Path, tmp_path: Path) -> None:
    """What makes a link elsewhere is only text here."""
    data = b"/etc/passwd"
    entry = {"name": "link.md", "size": len(data), "changed": 0}
    entry["sha256"] = hashlib.sha256(data).hexdigest()
    rewritten(archive, manifest(lambda told: told["files"].append(entry)))
    with zipfile.ZipFile(archive, "a") as file:
        info = zipfile.ZipInfo("tree/link.md")
        info.external_attr = 0o120777 << 16
        file.writestr(info, data)
    assert acp("import", str(archive), str(tmp_path / "new")).returncode == 0
    link = tmp_path / "new" / "link.md"
    assert not link.is_symlink() and link.read_bytes() == data


def arrived(acp: Acp, folder: Path, place: Path) -> dict[str, Any]:
    """A collaboration as it is where its archive was unpacked."""
    place.parent.mkdir(exist_ok=True)
    made = acp("export", str(folder), "-o", str(place) + ".zip")
    assert made.returncode == 0, made.stderr
    told = acp("import", str(place) + ".zip", str(place))
    assert told.returncode == 0, told.stderr
    found = told.stdout.removeprefix("unpacked: ").partition(" (")[0]
    shown: dict[str, Any] = json.loads(acp("show", found, "--json").stdout)["snapshot"]
    return shown


def test_an_initiative_comes_with_its_repositories(acp: Acp, tmp_path: Path) -> None:
    root = making.make_initiative(tmp_path / "work" / "house", auth=making.state())
    before = json.loads(acp("show", str(root), "--json").stdout)["snapshot"]
    after = arrived(acp, root, tmp_path / "elsewhere" / "house")
    assert len(after["parts"]) == len(before["parts"]) == 1
    assert Path(after["parts"][0]).is_relative_to(tmp_path / "elsewhere")
    for what in ("phase", "status", "findings", "gates", "panels"):
        assert after[what] == before[what], what


def test_a_governed_run_comes_with_the_files_that_it_is_about(acp: Acp, tmp_path: Path) -> None:
    root = making.make_run(tmp_path / "run")
    making.write(root / ".agentxchain/dispatch/index.json", {"turns": []})
    (root / "src").mkdir()
    (root / "src" / "counter.py").write_text("count = 0\n")
    (root / "build").mkdir()
    (root / "build" / "large.o").write_text("not ours")
    (root / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    arrived(acp, root, tmp_path / "there")
    there = tmp_path / "there"
    assert (there / "src" / "counter.py").read_text() == "count = 0\n"
    assert (there / ".agentxchain/dispatch/index.json").exists()
    assert not (there / "build").exists() and not (there / ".git").exists()


def test_what_cannot_be_carried_whole_is_refused_and_says_what_is_missing(
    acp: Acp, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.md").write_text((folder / "review.md").read_text())
    (folder / "review.md").unlink()
    (folder / "review.md").symlink_to(tmp_path / "mine.md")
    made = acp("export", str(folder), "-o", str(tmp_path / "it.zip"))
    assert made.returncode == 2 and made.stderr.count("\n") == 1
    assert "an archive would be incomplete" in made.stderr and "review.md" in made.stderr
    assert not (tmp_path / "it.zip").exists()
    assert not list(tmp_path.glob(".it.zip*"))
