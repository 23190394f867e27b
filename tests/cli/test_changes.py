"""What changed between two looks at a collaboration, as `acp watch` tells it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core import model
from acp_core.cli import watch
from acp_core.model import Snapshot
from tests.support import toy

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
Look = Callable[[], Snapshot]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = toy.make(tmp_path / "talk")
    toy.say(folder, "ann", "said", "Let us choose")
    return folder


@pytest.fixture
def look(folder: Path) -> Look:
    """Reads the conversation again, ten seconds later each time."""
    opened = toy.open_toy(str(folder))
    times = iter(NOW + timedelta(seconds=10 * i) for i in range(100))
    return lambda: opened.refresh(next(times))


def told(old: Snapshot, new: Snapshot) -> list[tuple[str, str]]:
    return [(change.type, change.text) for change in watch.between(old, new)]


def test_watching_begins_with_how_it_stands(folder: Path, look: Look) -> None:
    toy.say(folder, "ben", "asked", "Which one?")
    first = [(change.type, change.text) for change in watch.first(look())]
    assert first == [
        ("state", "Talking, waiting for an answer to “Which one?”."),
        ("need", "needs you: ben asks: Which one?"),
    ]


def test_an_event_comes_with_what_follows_from_it(folder: Path, look: Look) -> None:
    before = look()
    toy.say(folder, "ben", "asked", "Which one?")
    assert told(before, look()) == [
        ("event", "2 ben asked: Which one?"),
        ("waiting", "waiting for ben: wait for an answer"),
        ("need", "needs you: ben asks: Which one?"),
    ]


def test_the_end_is_a_phase_and_a_status(folder: Path, look: Look) -> None:
    toy.say(folder, "ben", "asked", "Which one?")
    before = look()
    toy.say(folder, "ann", "answered", "Blue")
    toy.say(folder, "ann", "done", "Blue it is")
    assert told(before, look()) == [
        ("event", "3 ann answered: Blue"),
        ("event", "4 ann done: Blue it is"),
        ("phase", "phase: talking → done"),
        ("waiting", "waiting for no participant"),
        ("need_met", "no longer needed: ben asks: Which one?"),
        ("status", "completed: Done."),
    ]


def test_nothing_new_is_nothing(look: Look) -> None:
    before = look()
    assert told(before, look()) == []


def test_a_document_is_told_but_state_files_are_not(folder: Path, look: Look) -> None:
    before = look()
    (folder / toy.NOTES).write_text("# Blue\n")
    changed = look()
    assert told(before, changed) == [("document", "document: notes.md changed")]
    (folder / toy.NOTES).unlink()
    missing = look()
    assert told(changed, missing) == [("document", "document: notes.md missing")]
    less = replace(missing, documents=missing.documents[1:])
    assert told(missing, less) == [("document", "document: notes.md gone")]
    assert told(less, missing) == [("document", "document: notes.md missing")]


def test_a_document_that_changed_too_late_says_so(look: Look) -> None:
    before = look()
    notes = before.documents[0]
    late = replace(notes, version="2", late="changed after it was accepted")
    after = replace(before, documents=(late, *before.documents[1:]))
    assert told(before, after) == [
        ("document", "document: notes.md changed (changed after it was accepted)")
    ]


def test_a_finding_comes_and_goes(folder: Path, look: Look) -> None:
    before = look()
    log = (folder / toy.LOG).read_text()
    (folder / toy.LOG).write_text(log + "nonsense\n")
    broken = look()
    message = "TOY001 toy.log:2 line 2 is not TIME WHO KIND TEXT"
    assert told(before, broken) == [("finding", f"error: {message}")]
    (folder / toy.LOG).write_text(log)
    assert told(broken, look()) == [
        ("finding_cleared", "cleared: TOY001 line 2 is not TIME WHO KIND TEXT")
    ]


def test_a_finding_that_only_moved_to_another_line_is_no_news(look: Look) -> None:
    before = look()
    one = model.Finding("X1", model.Severity.ERROR, "bad", "notes.md", 3)
    old = replace(before, findings=(one,))
    assert told(old, replace(before, findings=(replace(one, line=9),))) == []


def test_a_log_that_was_rewritten_is_said_before_its_events(folder: Path, look: Look) -> None:
    toy.say(folder, "ben", "said", "Green")
    before = look()
    (folder / toy.LOG).write_text("")
    toy.say(folder, "ann", "said", "Let us choose")
    toy.say(folder, "ben", "said", "Red")
    toy.say(folder, "ann", "said", "Why?")
    assert told(before, look()) == [
        ("history", "history changed: 2 events before, 3 now"),
        ("event", "2 ben said: Red"),
        ("event", "3 ann said: Why?"),
    ]


def test_a_log_that_was_cut_is_said(folder: Path, look: Look) -> None:
    before = look()
    (folder / toy.LOG).write_text("")
    assert told(before, look()) == [("history", "history changed: 1 event before, 0 now")]


def test_a_file_that_cannot_be_read_is_told_and_what_is_known_stays(
    folder: Path, look: Look
) -> None:
    before = look()
    (folder / toy.SETTINGS).write_text("{")
    [(kind, text)] = told(before, look())
    assert kind == "source"
    assert text.startswith("reading: stale, toy.json cannot be read")


def test_every_change_bears_its_fields(folder: Path, look: Look) -> None:
    before = look()
    toy.say(folder, "ben", "asked", "Which one?", at="2026-01-02T11:59:00Z")
    event, waiting, need = watch.between(before, look())
    assert event.at == datetime(2026, 1, 2, 11, 59, tzinfo=UTC)
    assert event.fields["event"]["at"] == "2026-01-02T11:59:00Z"
    assert event.fields["event"]["summary"] == "Which one?"
    assert waiting.fields == {
        "waiting": [
            {
                "participant": "ben",
                "what": "wait for an answer",
                "since": "2026-01-02T11:59:00Z",
            }
        ]
    }
    assert need.fields["need"]["code"] == "TOY_ASKED"
