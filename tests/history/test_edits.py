"""A recording knows the bytes: an edit is seen that file times are not exact enough for."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.history import store
from acp_core.history.recorder import Recorder
from acp_core.history.store import Store
from acp_core.model import Snapshot
from tests.cli.support import Acp
from tests.protocols.folder.support import change_protocol, line_of, make_v1, make_v2, say

LOG = ("events.jsonl", "protocol.json")
AT = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)


def stamped(*paths: Path, seconds: float) -> None:
    """Give files a time so many seconds after the last event."""
    moment = AT.timestamp() + seconds
    for path in paths:
        os.utime(path, (moment, moment))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Submitted for review a few minutes ago; nothing of it was recorded yet."""
    made = make_v1(tmp_path / "cache", "drafting")
    say(made, "server", "proposal_submitted", at=AT)
    stamped(*(path for path in made.iterdir() if path.is_file()), seconds=0)
    return made


def record(folder: Path) -> None:
    recorder = Recorder("test")
    Fleet([folder], recorder=recorder).read()
    recorder.close()
    time.sleep(0.01)


def read(folder: Path) -> Snapshot:
    (snapshot,) = Fleet([folder]).read()
    return snapshot


def edit(folder: Path, name: str, text: str = "\nOne more sentence.\n", after: float = 1) -> None:
    with (folder / name).open("a") as document:
        document.write(text)
    stamped(folder / name, seconds=after)


@pytest.mark.parametrize("name", ["proposal.md", "decisions.md", "readiness.md"])
def test_an_edit_within_the_tolerance_of_file_times_is_seen(folder: Path, name: str) -> None:
    record(folder)
    edit(folder, name)
    shown = read(folder)
    text = f"{name} changed during the review (as recorded)"
    assert [notice.sentence for notice in shown.notices] == [text]
    (cause,) = [each for each in shown.causes if each.code == "C4"]
    assert cause.certain and cause.about.document == name


def test_the_deliverable_is_seen_too(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "memo", "reviewing")
    say(folder, "reader", "review_submitted", at=AT)
    record(folder)
    with (folder / "deliverables/decision.md").open("a") as document:
        document.write("More.\n")
    notices = [notice.sentence for notice in read(folder).notices]
    assert any(text.startswith("deliverables/decision.md changed during") for text in notices)


def test_an_edit_of_what_protocol_json_was_founded_on_is_seen(folder: Path) -> None:
    record(folder)
    change_protocol(folder, completionGates=["Anything goes"])
    stamped(folder / "protocol.json", seconds=1.5)
    assert [notice.about.document for notice in read(folder).notices] == ["protocol.json"]


def test_what_follows_from_an_event_is_no_edit(folder: Path) -> None:
    record(folder)
    change_protocol(folder, currentPhase="reviewing", waitingFor=["reader"], updatedAt="now")
    stamped(folder / "protocol.json", seconds=1.5)
    assert read(folder).notices == ()


def test_without_a_recording_nothing_is_made_up(folder: Path) -> None:
    edit(folder, "proposal.md")
    assert read(folder).notices == ()
    record(folder)  # the bytes from before the edit are not known
    assert read(folder).notices == ()


def test_what_was_written_again_as_it_was_is_no_edit(folder: Path) -> None:
    record(folder)
    edit(folder, "proposal.md", "")
    assert read(folder).notices == ()


def test_what_changed_before_the_event_is_no_edit(tmp_path: Path) -> None:
    """Recorded while it was a draft, written on, and submitted, all within a second."""
    folder = make_v1(tmp_path / "cache", "drafting")
    record(folder)
    edit(folder, "proposal.md")
    say(folder, "server", "proposal_submitted", at=AT)
    stamped(folder / "events.jsonl", folder / "protocol.json", seconds=1)
    record(folder)
    assert read(folder).notices == ()
    edit(folder, "proposal.md", after=1.5)
    assert [notice.about.document for notice in read(folder).notices] == ["proposal.md"]


def test_a_log_that_was_rewritten_names_no_edit(folder: Path) -> None:
    """What was seen with a longer log says nothing about this one's events."""
    record(folder)
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(lines[0])
    record(folder)
    (folder / "proposal.md").write_text("# Proposal\n\nAnew.\n")
    say(folder, "server", "proposal_submitted", "Again", at=AT)
    stamped(*(folder / name for name in (*LOG, "proposal.md")), seconds=1)
    record(folder)
    assert read(folder).notices == ()


def test_the_commands_say_so(folder: Path, tmp_path: Path) -> None:
    acp = Acp(tmp_path)
    assert acp("record", "--once", str(folder)).returncode == 0
    edit(folder, "readiness.md")
    told = "readiness.md changed during the review (as recorded)"
    assert told in acp("show", str(folder), env={"COLUMNS": "200"}).stdout
    assert '"code": "C4"' in acp("why", str(folder), "--json").stdout


def test_a_document_that_rests_while_events_settle_it_asks_no_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a look found before the event came is what was there then: no file of the recorder tells more."""
    made = make_v1(tmp_path / "cache", "drafting")
    stamped(*(path for path in made.iterdir() if path.is_file()), seconds=1)
    record(made)
    fleet = Fleet([made])
    fleet.read()
    asked: list[str] = []
    find = store.open_recording

    def noted(key: str) -> Store | None:
        asked.append(key)
        return find(key)

    monkeypatch.setattr(store, "open_recording", noted)
    entry = {"seq": 2, "from": "server", "event": "proposal_submitted", "summary": "Submitted."}
    entry |= {"at": AT.strftime("%Y-%m-%dT%H:%M:%SZ"), "reply_to": 1}
    with (made / "events.jsonl").open("ab") as log:
        log.write(line_of(entry))  # its documents bear a time just after it
    fleet.read()
    assert asked == []
    edit(made, "proposal.md", after=1.5)
    fleet.read()
    assert asked
