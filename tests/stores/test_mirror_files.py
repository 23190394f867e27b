"""What a mirror's manifest may name, and what becomes of files that grow: no store is needed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from acp_core.stores import mirror
from acp_core.stores.engine import StoreRefused
from acp_core.stores.mirror import File, Manifest

MARK = "0" * 32


def manifest(**files: bytes) -> Manifest:
    """A mirror of files, by name."""
    return made({name: mirror.file_of(name, 1, data, None) for name, data in files.items()})


def made(files: dict[str, File], number: int = 1) -> Manifest:
    """A mirror of files."""
    listed = tuple(each for _, each in sorted(files.items()))
    return Manifest(MARK, number, "governed", "lamp", "alpha", "anna", "", listed)


def told(**changed: Any) -> bytes:
    """A manifest as a stranger writes it."""
    value = json.loads(mirror.encode(manifest(state=b"{}")))
    return json.dumps(value | changed).encode()


def one(name: str, **changed: Any) -> list[Any]:
    """A file of a manifest under any name."""
    file = mirror.file_of(name, 1, b"x", None)._replace(**changed)
    return [file.name, file.written, file.sha256, file.size, [list(e) for e in file.pieces]]


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../../../../../x", "a/../../x", ".git/hooks/post-checkout", ".acp/share.json", ".claude/settings.json",
     "CLAUDE.md", ".env", "a\x1b[2J", "a:b", "con", "x/" * 20 + "x", "", ".agentxchain", ".agentxchain/.git/config",
     "../.ssh/authorized_keys", "git~1/hooks"],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_or_orders_something_is_refused(name: str) -> None:
    with pytest.raises(StoreRefused):
        mirror.decode(told(files=[one(name)]))
    assert name == "" or mirror.reason_against(name)


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": "acp.mirror/2"},
        {"protocol": "folder"},
        {"name": "../x"},
        {"name": ".."},
        {"name": "a/b"},
        {"mark": "no"},
        {"number": -1},
        {"number": True},
        {"number": 1.5},
        {"files": [one("a"), one("a")]},
        {"files": [one("Review.md"), one("review.md")]},
        {"files": [one("a"), one("a/b")]},
        {"files": [one("a", size=2)]},
        {"files": [one("a", size=17 << 20)]},
        {"files": [one("a", sha256="../../x")]},
        {"files": [one("a", written=1 << 70)]},
        {"files": [["a"]]},
        {"files": {}},
        {"standing": 3},
        {"acts": 3},
        {"host": ["x"]},
    ],
)
def test_a_manifest_that_is_none_is_refused_in_one_line(changed: dict[str, Any]) -> None:
    data = told(**changed)
    assert mirror.is_manifest(data)
    with pytest.raises(StoreRefused) as refused:
        mirror.decode(data)
    assert "\n" not in str(refused.value)


def test_pieces_that_are_not_what_they_are_called_write_nothing(tmp_path: Path) -> None:
    told = manifest(state=b"right")
    (piece,) = told.files[0].pieces
    with pytest.raises(StoreRefused, match="not what its name says"):
        mirror.restore(str(tmp_path), told, None, {f"pieces/{piece.sha256}": b"wrong"})
    assert not list(tmp_path.rglob("state"))
    with pytest.raises(mirror.PiecesMissing):
        mirror.restore(str(tmp_path), told, None, {})


def test_a_link_in_the_folder_leads_nobody_out(tmp_path: Path) -> None:
    folder, outside = tmp_path / "reader", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / ".acp").mkdir()
    (folder / ".acp/mirror").symlink_to(outside)
    told = manifest(state=b"x")
    came = mirror.documents([(told.files[0], b"x")], None)
    with pytest.raises(OSError):
        mirror.restore(str(folder), told, None, came)
    assert not list(outside.iterdir())


def test_files_are_read_only_and_as_old_as_they_are(tmp_path: Path) -> None:
    told = made({"a/b.json": mirror.file_of("a/b.json", 1_700_000_000_123_456_789, b"{}", None)})
    came = mirror.documents([(told.files[0], b"{}")], None)
    assert mirror.restore(str(tmp_path), told, None, came) == ["a/b.json"]
    path = tmp_path / mirror.lies(told, "a/b.json")
    found = os.stat(path)
    assert (found.st_mode & 0o777, found.st_mtime_ns) == (0o400, 1_700_000_000_123_456_789)
    assert mirror.restore(str(tmp_path), told, told, {}) == []
    path.unlink()
    path.write_text("forged", encoding="utf-8")
    with pytest.raises(mirror.PiecesMissing):  # then everything is read, and put right
        mirror.restore(str(tmp_path), told, told, {})
    assert mirror.restore(str(tmp_path), told, told, came) == ["a/b.json"]
    assert path.read_bytes() == b"{}"


def test_a_log_that_grows_sends_what_was_added(tmp_path: Path) -> None:
    data, file, before, sent = b"", None, None, 0
    for number in range(200):
        data += json.dumps({"seq": number, "text": "x" * 200}).encode() + b"\n"
        file = mirror.file_of("log.jsonl", number, data, file)
        now = made({"log.jsonl": file}, number + 1)
        came = mirror.documents([(file, data)], before)
        sent += sum(len(each) for each in came.values() if each is not None)
        mirror.restore(str(tmp_path), now, before, came)
        before = now
    assert before is not None
    assert (tmp_path / mirror.lies(before, "log.jsonl")).read_bytes() == data
    assert len(before.files[0].pieces) < 20 and sent < 12 * len(data)
    shorter = mirror.file_of("log.jsonl", 0, data[:500], file)
    assert [each.size for each in shorter.pieces] == [500]


def test_another_state_of_things_is_another_matter() -> None:
    one, other = manifest(**{"state.json": b"{}"}), manifest(**{"state.json": b"{ }"})
    assert mirror.matter(one) != mirror.matter(other)
    assert mirror.matter(one) != mirror.matter(one._replace(mark="1" * 32))
    logged = manifest(**{"state.json": b"{}", "events.jsonl": b"more"})
    assert mirror.matter(one) == mirror.matter(logged)
