"""`acp show`: one collaboration as plain text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core import model
from acp_core.cli import output
from acp_core.cli.output import Terminal
from acp_core.cli.show import View, page
from acp_core.model import PhaseState, Snapshot, Visit
from acp_core.model.matter import remark
from tests.cli.support import Acp
from tests.support import toy

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    monkeypatch.chdir(tmp_path)
    folder = toy.make(tmp_path / "door", "Choose a colour", continues="../before")
    toy.say(folder, "ann", "said", "Let us choose", "2026-01-02T10:00:00Z")
    toy.say(folder, "ben", "asked", "Blue or green?", "2026-01-02T11:41:00Z")
    (folder / toy.LOG).open("a").write("nonsense\n")
    read = toy.open_toy(str(folder)).refresh(NOW)
    moved = NOW - timedelta(minutes=5)
    documents = tuple(replace(each, changed=moved, size=512) for each in read.documents)
    return replace(read, documents=documents, location="/runs/door")


def view(**given: object) -> View:
    return View(**({"now": NOW, "shown_on": Terminal(width=90), "utc": True} | given))  # type: ignore[arg-type]


def test_the_whole_page(snapshot: Snapshot, tmp_path: Path) -> None:
    shown = page(snapshot, view(needs=snapshot.needs))
    assert shown[:-1] == [
        "door — Talking, waiting for an answer to “Blue or green?”.",
        "Objective: Choose a colour",
        "toy 1 · ✗ invalid · started 10:00Z · changed 19m ago · /runs/door",
        "",
        "● talking 2h ─ ○ done",
        "",
        "Needs you",
        "  ! ben asks: Blue or green? (19m ago)",
        "    → acp act door answer",
        "",
        "Waiting for",
        "  ben  19m  wait for an answer",
        "",
        "Next",
        "  → ann  talk",
        "  → ben  talk",
        "",
        "Timeline (2 events)",
        "    10:00Z  1  ▲  ann  said   Let us choose",
        "    11:41Z  2  ◆  ben  asked  Blue or green?",
        "",
        "Documents",
        "  notes.md  Notes     present  512 B  changed 5m ago",
        "  toy.log   Log       present  512 B  changed 5m ago",
        "  toy.json  Settings  present  512 B  changed 5m ago",
        "",
        "Gates",
        "  [ ] every question is answered  toy.log",
        "",
        "Findings (1 error)",
        "  ✗ error TOY001 toy.log:3 line 3 is not TIME WHO KIND TEXT",
        "",
        "Questions",
        "  [ ] ben  Blue or green?",
        "",
        "Story",
        "  continues before (not found)",
    ]
    assert shown[-1].endswith("/before")


def test_what_is_new_since_the_last_visit_is_marked(snapshot: Snapshot) -> None:
    notes = snapshot.documents[0]
    seen = {each.id: each.version for each in snapshot.documents} | {notes.id: "older"}
    del seen[snapshot.documents[2].id]
    lines = page(snapshot, view(unread=1, seen=seen))
    assert "Timeline (2 events, 1 new since your last visit)" in lines
    assert "  new  11:41Z  2  ◆  ben  asked  Blue or green?" in lines
    changed = [line for line in lines if "since your last visit" in line or "new to you" in line][
        1:
    ]
    assert [line.split()[0] for line in changed] == ["notes.md", "toy.json"]


def test_a_long_timeline_shows_its_end(snapshot: Snapshot) -> None:
    lines = page(snapshot, view(events=1))
    assert "Timeline (last 1 of 2 events; use --all to see every event)" in lines
    assert not any("Let us choose" in line for line in lines)


def test_an_event_tells_what_it_answers_and_what_is_wrong_with_it(snapshot: Snapshot) -> None:
    event = snapshot.events[1]._replace(reply_to="1", problem="it is not ben's turn")
    lines = page(replace(snapshot, events=(event,)), view())
    at = next(i for i, line in enumerate(lines) if "Blue or green?" in line and "◆" in line)
    assert lines[at + 1 : at + 3] == [
        "         ↳ replies to 1",
        "         ✗ it is not ben's turn",
    ]


def test_a_time_that_nobody_wrote_down_is_marked(snapshot: Snapshot) -> None:
    event = snapshot.events[0]._replace(at_source="file time")
    unknown = snapshot.events[1]._replace(at=None)
    lines = page(replace(snapshot, events=(event, unknown)), view())
    assert any("10:00Z~" in line for line in lines)
    assert any(line.split()[:2] == ["-", "2"] for line in lines)


def test_doubt_and_a_stale_source_stand_on_top(snapshot: Snapshot) -> None:
    doubtful = replace(
        snapshot,
        doubt="event 4 is illegal",
        source=model.Source(model.SourceState.STALE, "toy.json is half written"),
        notices=(remark("LATE", "notes.md changed after it was settled", since=NOW),),
    )
    lines = page(doubtful, view())
    assert "~ Stale, toy.json is half written" in lines
    assert "? Uncertain: event 4 is illegal" in lines
    assert "  ! notes.md changed after it was settled (0s ago)" in lines


def test_findings_explain_and_say_what_to_do(snapshot: Snapshot) -> None:
    finding = model.Finding(
        "X1", model.Severity.WARNING, "odd", "notes.md", 3, "2", "It is odd.", "Even it out."
    )
    lines = page(replace(snapshot, findings=(finding,)), view())
    at = lines.index("Findings (1 warning)")
    assert lines[at + 1 : at + 4] == [
        "  ! warning X1 notes.md:3 event 2 odd",
        "    It is odd.",
        "    → Even it out.",
    ]


def test_a_long_rail_goes_on_in_the_next_line(snapshot: Snapshot) -> None:
    names = ("drafting", "reviewing", "revising", "decision review", "readiness", "completed")
    phases = tuple(
        model.Phase(name, name, PhaseState.DONE, (Visit(NOW, NOW), Visit(NOW, None, 2)))
        for name in names
    )
    lines = page(replace(snapshot, phases=phases), view(shown_on=Terminal(width=50)))
    rail = lines[lines.index("") + 1 :]
    assert rail[0] == "✓ drafting 0s (2 rounds)"
    assert rail[1].startswith("  ─ ✓ reviewing")
    assert all(output.width(line) <= 50 for line in rail[: rail.index("")])


def test_time_stands_still_in_what_is_over(snapshot: Snapshot) -> None:
    phase = model.Phase("done", "done", PhaseState.CURRENT, (Visit(NOW - timedelta(days=9), None),))
    over = replace(snapshot, phases=(phase,), status=model.Status.COMPLETED)
    assert "● done" in page(over, view())


@pytest.mark.parametrize("width", [40, 80, 120])
def test_paragraphs_and_tables_fit(snapshot: Snapshot, width: int) -> None:
    lines = page(snapshot, view(shown_on=Terminal(width=width), needs=snapshot.needs))
    assert all(output.width(line) <= width for line in lines)


# --- as a process --------------------------------------------------------------------------


def test_a_person_reads_a_collaboration(acp: Acp) -> None:
    folder = toy.make(acp.home / "door")
    toy.say(folder, "ben", "asked", "Blue or green?")
    ran = acp("show", "door")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("door — Talking, waiting for an answer")
    assert "  ! ben asks: Blue or green?" in ran.stdout


@pytest.mark.parametrize("way", ["option", "settings"])
def test_times_are_shown_in_utc_on_demand(acp: Acp, way: str) -> None:
    folder = toy.make(acp.home / "door")
    toy.say(folder, "ann", "said", "Hello", "2026-01-02T10:00:00Z")
    zone = {"TZ": "Asia/Tokyo"}
    assert "19:00" in acp("show", "door", env=zone).stdout
    if way == "settings":
        (acp.home / "config").mkdir()
        (acp.home / "config" / "config.toml").write_text("utc = true\n")
    options = ["--utc"] if way == "option" else []
    assert "10:00Z" in acp("show", "door", *options, env=zone).stdout


def test_all_shows_every_event(acp: Acp) -> None:
    folder = toy.make(acp.home / "door")
    for i in range(20):
        toy.say(folder, "ann", "said", f"word{i}.")
    assert "word4." not in acp("show", "door").stdout
    assert "word5." in acp("show", "door").stdout
    assert "word4." in acp("show", "door", "--all").stdout


def test_json_has_everything(acp: Acp) -> None:
    folder = toy.make(acp.home / "door")
    toy.say(folder, "ben", "asked", "Blue\x1b[2J or green?")
    told = json.loads(acp("show", "door", "--json").stdout)
    assert told["schema"] == "acp.show/1"
    one = told["snapshot"]
    assert one["key"] == str(folder)
    assert one["events"][0]["summary"] == "Blue\ufffd[2J or green?"
    assert [each["id"] for each in one["documents"]] == ["notes.md", "toy.log", "toy.json"]
    assert one["needs"][0]["code"] == "TOY_ASKED"
    for part in (
        "phases",
        "participants",
        "next_actions",
        "gates",
        "findings",
        "panels",
        "lineage",
    ):
        assert part in one


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda home: None, "error: door: no such folder\n"),
        (lambda home: (home / "door").mkdir(), "error: door: "),
        (lambda home: (home / "door").write_text(""), "error: door: not a folder"),
    ],
)
def test_what_is_no_collaboration_is_one_clear_line(
    acp: Acp, make: Callable[[Path], object], said: str
) -> None:
    make(acp.home)
    ran = acp("show", "door")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(said) and ran.stderr.count("\n") == 1


def test_a_folder_above_is_told_what_stands_below(acp: Acp) -> None:
    toy.make(acp.home / "runs" / "door")
    assert "did you mean runs/door?" in acp("show", "runs").stderr
