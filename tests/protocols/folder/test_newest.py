"""The newest events of a log, told from its last bytes before anything is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acp_core.protocols import registry
from acp_core.protocols.discovery import NewestEvent, newest
from tests.protocols.folder.support import UPTO, make_v1, make_v2, say
from tests.support.toy import PROTOCOL as TOY


def told(folder: Path, most: int = 100) -> tuple[NewestEvent, ...]:
    protocol = next(each for each in registry.bundled() if each.name == "folder")
    return newest(folder, protocol, most)


def in_the_log(folder: Path) -> list[NewestEvent]:
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [NewestEvent(e["at"], e["from"], e["event"], e["summary"]) for e in lines]


@pytest.mark.parametrize("upto", UPTO)
@pytest.mark.parametrize("make", [make_v1, make_v2])
def test_they_are_the_last_lines_of_the_log(make: object, upto: str, tmp_path: Path) -> None:
    folder = make(tmp_path / "c", upto)  # type: ignore[operator]
    assert list(told(folder)) == in_the_log(folder)
    assert list(told(folder, 2)) == in_the_log(folder)[-2:]


def test_of_a_log_longer_than_what_is_looked_at_no_event_is_told_in_half(folder: Path) -> None:
    for number in range(300):
        say(folder, "reader", "blocked", f"{number} " + "x" * 700)
    found = told(folder, 1_000)
    assert 50 < len(found) < 300
    assert list(found) == in_the_log(folder)[-len(found) :]


def test_what_is_no_event_yet_or_none_at_all_is_left_out(folder: Path) -> None:
    log = folder / "events.jsonl"
    events = in_the_log(folder)
    whole = log.read_bytes()
    torn = b'{"seq":4,"from":"reader","event":"blocked","at":"2026-05-03T12:0'
    for added in (torn, b"\n", b"no JSON\n[1, 2]\n\xff\xfe\n", b"\x00" * 200 + b"\n"):
        log.write_bytes(whole + added)
        assert list(told(folder)) == events, added


@pytest.mark.parametrize("what", ["missing", "empty", "a pipe", "a folder", "unreadable"])
def test_where_the_log_cannot_be_read_nothing_is_told_and_nobody_waits(
    what: str, folder: Path
) -> None:
    log = folder / "events.jsonl"
    log.unlink()
    if what == "empty":
        log.touch()
    elif what == "a pipe":
        os.mkfifo(log)
    elif what == "a folder":
        log.mkdir()
    elif what == "unreadable":
        log.symlink_to(log)
    assert told(folder) == ()


def test_a_folder_that_shows_a_collaboration_of_another_host_tells_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies there may be old: the store has what happened since."""
    (folder / "mirror.json").write_text("{}")
    monkeypatch.setattr("acp_core.protocols.folder.read.detect.shows_mirror", lambda path: True)
    assert told(folder) == ()


def test_a_protocol_that_tells_none_or_fails_at_it_keeps_nobody(tmp_path: Path) -> None:
    assert newest(tmp_path, TOY, 10) == ()
    for reference in ("no.such.module:newest", "os:no_such_function", "os:listdir"):
        assert newest(tmp_path / "c", TOY._replace(newest=reference), 10) == ()
