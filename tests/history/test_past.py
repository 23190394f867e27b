"""A collaboration at any moment of its past, from recordings, from git, and from what is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.history.moments import DOCUMENT, EVENT
from acp_core.history.past import Past, gaps
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Span
from acp_core.history.store import open_recording, recording_path
from acp_core.model import Status, Verdict
from acp_core.model.clock import utc_now
from acp_core.protocols.discovery import identify
from acp_core.protocols.folder.rehearsal import scenario as rehearsal_scenario
from acp_core.protocols.folder.rehearsal.scenario import load
from acp_core.protocols.registry import bundled
from tests.agents.support import wait_for
from tests.golden.states import all_states
from tests.loops.support import append, make
from tests.protocols.folder.support import age, make_v1

FILES = ("protocol.json", "proposal.md", "review.md", "decisions.md", "readiness.md",
         "conclusion.md", "events.jsonl")  # fmt: skip


def hashes(folder: Path) -> dict[str, str]:
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in FILES
        if (folder / name).exists()
    }


@contextmanager
def past_of(folder: Path) -> Iterator[Past]:
    found = identify(folder, bundled())
    assert found is not None
    past = Past(found, utc_now())
    try:
        yield past
    finally:
        past.close()


def record_at(folder: Path, at: datetime) -> None:
    """Record how it stands, at a time."""
    recorder = Recorder("test", clock=at.timestamp)
    Fleet([folder], recorder=recorder, clock=lambda: at).read()
    recorder.close()


def is_recorded(folder: Path, wanted: dict[str, str]) -> bool:
    """Whether the newest recorded version of every file is the one that is wanted."""
    store = open_recording(str(folder))
    if store is None:
        return False
    try:
        latest = {name: whole.hex() for name, (_, _, whole, _) in store.latest().items()}
    finally:
        store.close()
    return all(latest.get(name) == digest for name, digest in wanted.items())


async def recorded_run(folder: Path) -> dict[str, dict[str, str]]:
    """Carry the demo's story out while a fleet records; event id -> what was on disk then."""
    scenario = load("order-retries")
    rehearsal_scenario.start(scenario, folder, utc_now())
    on_disk = {"1": hashes(folder)}
    fleet = Fleet([folder], recorder=Recorder("test"))

    async def follow() -> None:
        async for _ in fleet.changes():
            pass

    following = asyncio.create_task(follow())

    def carry_out() -> None:
        wait_for(lambda: is_recorded(folder, on_disk["1"]), "the beginning to be recorded")
        for step in scenario.steps:
            rehearsal_scenario.take(step, scenario, folder, utc_now())
            now = hashes(folder)
            events = (folder / "events.jsonl").read_bytes().splitlines()
            on_disk[str(json.loads(events[-1])["seq"])] = now
            wait_for(lambda now=now: is_recorded(folder, now), "a step to be recorded")

    await asyncio.to_thread(carry_out)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await fleet.close()
    return on_disk


@pytest.mark.slow
async def test_at_every_event_the_documents_are_what_was_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        rehearsal_scenario, "_stamp", lambda path, at: None
    )  # the files' true times
    folder = tmp_path / "order-retries"
    on_disk = await recorded_run(folder)
    with past_of(folder) as past:
        assert past.present.status.value == "completed"
        proposals = set()
        for event, wanted in on_disk.items():
            place = past.index(event)
            assert place is not None
            found = {
                name: hashlib.sha256(data).hexdigest()
                for name in wanted
                if (data := past.content(place, name)) is not None
            }
            assert found == wanted, f"at event {event}"
            proposals.add(wanted["proposal.md"])
            then = past.at(place)
            assert then.missing == ()
            assert len(then.snapshot.events) == int(event)
            assert then.snapshot.verdict is not Verdict.UNKNOWN
            errors = [each.message for each in then.snapshot.findings if each.severity == "error"]
            assert errors == [], f"at event {event}"
        assert len(proposals) >= 3, "the empty one, and both versions"
        phases = [past.at(n).snapshot.phase for n in range(len(past.moments))]
        assert list(dict.fromkeys(phases))[-1] == "completed"
        assert {"drafting", "reviewing", "revising", "decision_review"} <= set(phases)
        back = [past.at(n).snapshot.phase for n in reversed(range(len(past.moments)))]
        assert back == phases[::-1]


def test_forwards_and_backwards_give_the_same(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    append(folder, "server", "proposal_submitted", 1)
    append(folder, "reader", "review_submitted", 2)
    with past_of(folder) as past, past_of(folder) as other:
        count = len(past.moments)
        forwards = [past.at(n).snapshot for n in range(count)]
        backwards = [other.at(n).snapshot for n in reversed(range(count))][::-1]
        for one, two in zip(forwards, backwards, strict=True):
            assert (one.phase, one.turns, one.findings) == (two.phase, two.turns, two.findings)
            assert not any("rewritten" in notice.sentence for notice in two.notices)


def test_without_a_recording_what_is_not_known_is_said(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    append(folder, "server", "proposal_submitted", 1)
    append(folder, "reader", "review_submitted", 2)
    log = (folder / "events.jsonl").read_text().splitlines(keepends=True)
    events = [json.loads(line) for line in log]
    for number, event in enumerate(events):  # an hour lies between them
        event["at"] = f"2026-05-03T{12 + number:02}:00:00Z"
    (folder / "events.jsonl").write_text(
        "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    )
    late = time.mktime((2026, 5, 3, 23, 0, 0, 0, 0, 0))
    for name in FILES:
        if (folder / name).exists():
            os.utime(folder / name, (late, late))
    with past_of(folder) as past:
        assert not past.recorded
        first = past.at(past.index("1") or 0)
        assert (first.snapshot.phase, [t.participant for t in first.snapshot.turns]) == (
            "drafting", ["server"],
        )  # fmt: skip
        assert "proposal.md" in first.missing
        assert "not recorded: " in first.snapshot.doubt
        assert first.snapshot.verdict is Verdict.UNKNOWN
        document = first.snapshot.document("proposal.md")
        assert document is not None and document.state == "not recorded"
        assert not any(each.document == "proposal.md" for each in first.snapshot.findings)
        second = past.at(past.index("2") or 0)
        assert second.snapshot.phase == "reviewing"
        last = past.at(len(past.moments) - 1)
        assert last.missing == ()
        assert "not recorded" not in last.snapshot.doubt
        assert past.text(len(past.moments) - 1, "proposal.md").text


@pytest.mark.parametrize(
    "state",
    [
        "folder/charter-missing",
        "workspaces/torn_status",
        pytest.param("governed/initiative-gate-open", marks=pytest.mark.slow),
        pytest.param("governed/run-turn-rejected", marks=pytest.mark.slow),
        pytest.param("cycle/blocked", marks=pytest.mark.slow),
    ],
)
def test_no_matter_is_made_up_of_what_nobody_recorded(tmp_path: Path, state: str) -> None:
    with past_of(all_states()[state].build(tmp_path)) as past:
        assert past.moments
        for place in range(len(past.moments)):
            then = past.at(place).snapshot
            assert (then.needs, then.causes, then.obstacles) == ((), (), ())
            assert not any("acp-past" in each.message for each in then.findings)


def test_matters_are_told_as_they_were_recorded(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    append(folder, "reader", "blocked", 1)
    record_at(folder, utc_now())
    with past_of(folder) as past:
        then = past.at(len(past.moments) - 1).snapshot
        assert [each.sentence for each in then.needs] == [
            "blocked in drafting by reader: Stepping in"
        ]
        assert then.needs[0].evidence == ("as recorded",)
        assert then.needs[0].verdicts == ()
        assert past.at(past.index("1") or 0).snapshot.needs == ()


def test_a_recording_of_acp_0_2_is_told_as_recorded(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    record_at(folder, utc_now())
    with closing(sqlite3.connect(recording_path(str(folder)))) as db, db:
        for id, told in db.execute("SELECT id, said FROM look").fetchall():
            old = json.loads(told) | {"causes": [["B4", "reader's loop has ended"]]}
            del old["needs"]
            db.execute("UPDATE look SET said = ? WHERE id = ?", (json.dumps(old), id))
    with past_of(folder) as past:
        then = past.at(len(past.moments) - 1).snapshot
        assert then.needs == ()
        assert [(each.code, each.sentence, each.wanted) for each in then.causes] == [
            ("B4", "reader's loop has ended", False)
        ]


def test_a_moment_before_anything_was_recorded_is_not_called_completed(tmp_path: Path) -> None:
    scenario, folder = load("order-retries"), tmp_path / "orders"
    begun = utc_now() - timedelta(hours=1)
    rehearsal_scenario.start(scenario, folder, begun)
    for number, step in enumerate(scenario.steps, 1):
        at = begun + timedelta(minutes=number)
        rehearsal_scenario.take(step, scenario, folder, at)
        for name in ("events.jsonl", "protocol.json"):
            os.utime(folder / name, (at.timestamp(), at.timestamp()))
        record_at(folder, at)
    with past_of(folder) as past:
        assert past.present.status is Status.COMPLETED
        unknown = [
            then for then in map(past.at, range(len(past.moments))) if not then.snapshot.phase
        ]
        assert unknown
        assert {then.snapshot.status for then in unknown} == {Status.UNKNOWN}


def test_committed_versions_are_used(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip

    git("init", "-q")
    (folder / "proposal.md").write_text("# The first\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    (folder / "proposal.md").unlink()
    git("commit", "-qam", "gone")
    (folder / "proposal.md").write_text("# The second\n\n- with\n- lines\n")
    git("add", "-A")
    git("commit", "-qm", "two")
    (folder / "proposal.md").write_text("# The third\n")
    with past_of(folder) as past:
        known = past.versions("proposal.md")
        assert [each.source for each in known] == ["committed", "committed", "by its file time"]
        assert [each.read() for each in known[:2]] == [
            b"# The first\n", b"# The second\n\n- with\n- lines\n",
        ]  # fmt: skip
        assert all(each.note for each in known[:2])


def test_a_name_never_leads_out_of_the_private_place(tmp_path: Path) -> None:
    from acp_core.history.past import Stage

    stage = Stage(str(tmp_path / "cache"))
    try:
        for name in ("../" * 30 + "etc/passwd", "/etc/passwd"):
            with pytest.raises(ValueError, match="out of the folder"):
                stage.set(0, {name: ("k", b"x", 0.0)}, frozenset())
        stage.set(0, {"../beside.md": ("k", b"x", 0.0)}, frozenset())
        assert (stage.folder.parent / "beside.md").read_bytes() == b"x"
    finally:
        stage.close()
    assert not stage.folder.exists()


def test_times_in_which_nobody_looked_are_gaps() -> None:
    spans = [Span("watch", 10.0, 20.0), Span("dashboard", 15.0, 30.0), Span("watch", 50.0, 60.0)]
    assert gaps(spans, 0.0, 70.0) == [(0.0, 10.0), (30.0, 50.0), (60.0, 70.0)]
    assert gaps([], 1.0, 2.0) == [(1.0, 2.0)]
    assert gaps(spans, 16.0, 18.0) == []


def test_moments_tell_events_and_documents_in_their_order(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    with past_of(folder) as past:
        kinds = [moment.kind for moment in past.moments]
        assert kinds.count(EVENT) == 1
        changed = {moment.name for moment in past.moments if moment.kind == DOCUMENT}
        assert changed == {*FILES, "README.md"} - {"protocol.json", "events.jsonl"}
        assert [m.at for m in past.moments] == sorted(m.at for m in past.moments)


def test_a_line_that_is_no_event_moves_none_of_the_others(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(b"".join([*lines[:2], b"{no\n", *lines[2:]]))
    age(folder)
    with past_of(folder) as past:
        for number, event in enumerate(past.present.events):
            place = past.index(event.id)
            assert place is not None
            assert (past.content(place, "events.jsonl") or b"").endswith(lines[number]), event.id
            asked = {count.event for count in past.counts(place) if count.event}
            assert asked == {str(seq) for seq in range(3, number + 2)}


def test_what_a_repository_configures_is_not_run(tmp_path: Path) -> None:
    """Reading committed versions runs git, and nothing that its repository names."""
    folder = make(tmp_path / "cache")
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    git("config", "user.name", "x")
    git("config", "user.email", "x@example.org")
    git("add", "-A")
    git("commit", "-qm", "one")
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external", "core.sshCommand"):
        git("config", name, str(program))
    git("config", "log.showSignature", "true")
    with past_of(folder) as past:
        assert [each.source for each in past.versions("proposal.md")] == ["committed"]
    assert not ran.exists()
