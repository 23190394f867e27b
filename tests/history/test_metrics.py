"""Where the time went: figures that were worked out by hand, and what nothing tells of."""

from __future__ import annotations

import json
import os
import time as clock
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.cli.stats import measure as measure_folder
from acp_core.history.metrics import (
    Metrics,
    PersonTime,
    Span,
    counts_over_time,
    describe_span,
    describe_wait,
    findings_over_time,
    measure,
    side_by_side,
    total_metrics,
)
from acp_core.history.metrics import measured as figures_of
from acp_core.history.past import Past
from acp_core.history.schema import Seen
from acp_core.model import Snapshot
from acp_core.model.past import Story
from acp_core.person.settings import Working, working_days, working_times
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import identify
from acp_core.protocols.folder.collaboration import FolderCollaboration
from acp_core.protocols.registry import bundled
from tests.cli.support import Acp
from tests.loops.support import make
from tests.protocols.governed import making

NOW = datetime(2026, 5, 4, 15, 0, tzinfo=UTC)
LUNCH = Working(*working_times("12:30-13:00"), working_days("mon-fri"), UTC)
RUN = (
    ("12:00:00", "server", "initialized"),
    ("12:10:00", "server", "proposal_submitted"),
    ("12:25:00", "reader", "review_submitted"),
    ("12:40:30", "reviewer", "review_submitted"),
    ("13:00:30", "server", "proposal_revised"),
    ("13:05:30", "server", "question_classified"),
    ("13:06:00", "reader", "decision_accepted"),
    ("13:06:30", "reviewer", "decision_accepted"),
    ("13:10:30", "server", "decision_accepted"),
    ("13:20:30", "server", "readiness_passed"),
    ("13:30:30", "server", "completed"),
)
REVIEWS = """# Review

## 2026-05-04T12:25:00Z - reader - seq 3

Concerns:
- None.

Required Changes:
- Name the time to live.
  It must be in seconds.
- Say who may clear it.

Questions: Who pays?

## 2026-05-04T12:40:30Z - reviewer - seq 4

**Concerns:**
1. It may grow.

Required Changes:
None so far.
"""


def folder_of(tmp_path: Path, events: Sequence[tuple[str, str, str]]) -> Path:
    folder = make(tmp_path / "cache")
    lines = [
        {"seq": seq, "at": f"2026-05-04T{at}Z", "from": who, "event": event, "summary": "It is so",
         "doc": "conclusion.md" if event == "completed" else "proposal.md",
         **({"reply_to": seq - 1} if seq > 1 else {})}
        for seq, (at, who, event) in enumerate(events, 1)
    ]  # fmt: skip
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "review.md").write_text(REVIEWS)
    (folder / "decisions.md").write_text("# Decisions\n\n- By key.\n- For a day.\n")
    return folder


def opened(folder: Path) -> Collaboration:
    found = identify(folder, bundled())
    assert found is not None
    return found.open()


def measured(folder: Path, now: datetime = NOW, working: Working = LUNCH) -> Metrics:
    collaboration = opened(folder)
    snapshot = collaboration.refresh(now)
    return measure(snapshot, collaboration.story(), (), (), now, working)


def test_every_figure_of_a_run_agrees_to_the_second(tmp_path: Path) -> None:
    found = measured(folder_of(tmp_path, RUN))
    assert found.lead == Span(5_430, 1_800)
    assert {p.phase: p.total.seconds for p in found.phases if p.total} == {
        "drafting": 600, "reviewing": 1_830, "revising": 1_200, "decision_review": 600,
        "readiness_check": 1_200, "completed": 0,
    }  # fmt: skip
    server, reader, reviewer = (
        next(p for p in found.people if p.participant == name)
        for name in ("server", "reader", "reviewer")
    )
    assert (server.turns, server.median, server.longest) == (6, 600, 1_200)
    assert (server.total, server.critical) == (Span(3_600, 1_170), Span(3_540, 1_170))
    assert server.parked == Span(1_830, 630)
    assert server.share == pytest.approx(3_540 / 5_430)
    assert (reader.turns, reader.median, reader.longest) == (2, 465, 900)
    assert (reader.total, reader.critical) == (Span(930, 0), Span(0, 0))
    assert reader.parked == Span(4_500, 1_800)
    assert (reviewer.turns, reviewer.longest) == (2, 1_830)
    assert (reviewer.total, reviewer.critical) == (Span(1_890, 630), Span(930, 630))
    assert (found.rounds, found.reviews, found.events) == (1, 2, 11)


def test_what_reviews_ask_and_what_was_decided_is_counted(tmp_path: Path) -> None:
    counts = measured(folder_of(tmp_path, RUN)).counts
    told = {(c.what, c.participant): c.value for c in counts if c.event}
    assert told == {
        ("concerns", "reader"): 0, ("required changes", "reader"): 2, ("questions", "reader"): 1,
        ("concerns", "reviewer"): 1, ("required changes", "reviewer"): 0,
        ("questions", "reviewer"): 0,
    }  # fmt: skip
    assert next(c.value for c in counts if c.what == "decisions") == 2


def test_a_run_that_goes_on_is_measured_up_to_now(tmp_path: Path) -> None:
    found = measured(folder_of(tmp_path, RUN[:3]))
    assert found.lead == Span(3 * 3_600, 1_800)
    reviewer = next(p for p in found.people if p.participant == "reviewer")
    assert (reviewer.waiting, reviewer.turns, reviewer.median) == (True, 0, None)
    assert reviewer.critical == Span(3_600 * 2 + 35 * 60, 1_800)


def test_what_nothing_tells_of_is_not_recorded(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, RUN)
    (folder / "review.md").unlink()
    collaboration = opened(folder)
    snapshot = collaboration.refresh(NOW)
    story = collaboration.story()
    turns = tuple(
        turn._replace(ended=None, since=None) if turn.participant == "reader" else turn
        for turn in story.turns
    )
    found = measure(snapshot, story._replace(turns=turns), (), (), NOW, LUNCH)
    assert found.tokens is None and found.cost is None and found.retries is None
    assert all(c.value is None for c in found.counts if c.event)
    reader = next(p for p in found.people if p.participant == "reader")
    assert (reader.total, reader.parked, reader.critical, reader.share) == (None,) * 4
    acp = Acp(tmp_path)
    shown = acp("stats", str(folder))
    assert shown.returncode == 0
    assert shown.stdout.count("not recorded") >= 6
    told = json.loads(acp("stats", str(folder), "--json").stdout)["collaborations"][0]
    assert told["cost"] is None and told["findings_over_time"] == []


def test_several_stand_side_by_side(tmp_path: Path) -> None:
    one, two = folder_of(tmp_path / "one", RUN), folder_of(tmp_path / "two", RUN[:4])
    acp = Acp(tmp_path)
    shown = acp("stats", str(one), str(two), env={"COLUMNS": "120"}).stdout
    status = next(line for line in shown.splitlines() if line.startswith("status"))
    assert status.split()[1:] == ["completed", "active"]
    wrong = acp("stats", str(tmp_path / "nothing"))
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1


def test_findings_over_time_come_from_the_recording() -> None:
    observations = [
        Seen(0.0, "{}", "[]"),
        Seen(5.0, "{}", '[["ACP1","error","m",null,null,null],["ACP2","warning","m",null,null,null]]'),
        Seen(6.0, "{}", '[["ACP3","error","m",null,null,null],["ACP2","warning","m",null,null,null]]'),
        Seen(9.0, "{}", '[["ACP2","warning","m",null,null,null]]'),
    ]  # fmt: skip
    points = [(point.at.timestamp(), *point[1:]) for point in findings_over_time(observations)]
    assert points == [(0.0, 0, 0), (5.0, 1, 1), (9.0, 0, 1)]


def test_nights_and_weekends_are_no_working_time() -> None:
    week = Working(zone=timezone(timedelta(hours=2)))
    friday = datetime(2026, 5, 8, 14, 0, tzinfo=UTC)  # 16:00 there
    assert week.seconds(friday, friday + timedelta(hours=5)) == 2 * 3_600
    assert week.seconds(friday, friday + timedelta(days=3)) == (2 + 7) * 3_600
    assert week.seconds(friday + timedelta(days=1), friday + timedelta(days=2)) == 0


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    st.lists(st.integers(0, 400_000), min_size=1, max_size=6),
)
def test_working_time_of_parts_adds_up_to_that_of_the_whole(
    start: datetime, parts: list[int]
) -> None:
    working = Working(zone=UTC)
    moments = [start.replace(tzinfo=UTC)]
    for part in parts:
        moments.append(moments[-1] + timedelta(seconds=part))
    whole = working.seconds(moments[0], moments[-1])
    pieces = sum(working.seconds(a, b) for a, b in pairwise(moments))
    assert whole == pytest.approx(pieces)
    assert 0 <= whole <= (moments[-1] - moments[0]).total_seconds()


@pytest.mark.parametrize("text", ["", "9-5", "18:00-09:00", "09:00"])
def test_wrong_hours_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="two times"):
        working_times(text)


@pytest.mark.parametrize("text", ["", "mon-xyz", "monday", "mon-"])
def test_wrong_days_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="days such as"):
        working_days(text)


def test_working_time_follows_the_clock_over_a_change_of_summer_time() -> None:
    """In Berlin the clocks go forward on 29 March 2026: Monday's nine o'clock is an hour earlier."""
    berlin = ZoneInfo("Europe/Berlin")
    working = Working(zone=berlin)
    friday = datetime(2026, 3, 27, 17, tzinfo=berlin)
    monday = datetime(2026, 3, 30, 10, tzinfo=berlin)
    assert working.seconds(friday, monday) == 2 * 3600
    week = Working(zone=berlin, days=frozenset(range(7)), begin=time(1), end=time(4))
    night = datetime(2026, 3, 29, tzinfo=berlin), datetime(2026, 3, 29, 12, tzinfo=berlin)
    assert week.seconds(*night) == 2 * 3600  # from one to four, without the hour that was left out


@pytest.mark.skipif(not hasattr(clock, "tzset"), reason="needs tzset")
def test_working_time_follows_this_machine_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    clock.tzset()
    try:
        friday = datetime(2026, 3, 27, 16, tzinfo=UTC)  # 17:00 there
        monday = datetime(2026, 3, 30, 8, tzinfo=UTC)  # 10:00 there
        assert Working().seconds(friday, monday) == 2 * 3600
    finally:
        monkeypatch.undo()
        clock.tzset()


def test_working_time_is_said_in_hours() -> None:
    """Forty hours of nine-hour days are no day and sixteen hours."""
    week = Span(7 * 86_400, 40 * 3600)
    kim = PersonTime("kim", 0, True, None, None, week, None, None, None, has_hours=True)
    assert describe_wait(kim) == "7 d (40 h in working hours)"


def test_working_time_is_shown_for_people_whose_hours_are_set(tmp_path: Path) -> None:
    """Agents work at night: a turn of 28 seconds on a Sunday took 28 seconds."""
    folder = folder_of(tmp_path, RUN)
    protocol = json.loads((folder / "protocol.json").read_text())
    protocol["participants"][0]["kind"] = "human"
    (folder / "protocol.json").write_text(json.dumps(protocol))
    at_night = Working.of({"hours": "02:00-03:00"}, UTC)
    metrics = measured(folder, working=at_night)
    person, *agents = metrics.people
    assert describe_wait(person).endswith("(0 s in working hours)")
    assert not any("working" in describe_wait(each) for each in agents)
    assert "working" not in describe_span(metrics.lead)
    unset = measured(folder, working=Working.of({}, UTC))
    assert not any("working" in describe_wait(each) for each in unset.people)


def _past(folder: Path, now: datetime = NOW) -> Past:
    found = identify(folder, bundled())
    assert found is not None
    return Past(found, now)


def test_a_clock_that_goes_backward_makes_no_span_negative_and_is_said(
    tmp_path: Path, acp: Acp
) -> None:
    run = [*RUN[:2], ("11:00:00", *RUN[2][1:]), *RUN[3:]]
    folder = folder_of(tmp_path, run)
    with closing(_past(folder)) as past:
        found = figures_of(past, (), (), NOW, LUNCH)
    assert found.metrics.lead is not None and found.metrics.lead.seconds == 90 * 60 + 30
    reader = next(each for each in found.metrics.people if each.participant == "reader")
    assert reader.total == Span(30.0, 0.0) and reader.took == (0.0, 30.0)
    assert found.metrics.doubt == ("event times go backward at event 3: durations are uncertain")
    assert found.drawn is not None
    for lane in found.drawn.lanes:
        for bar in lane.bars:
            assert found.drawn.start <= bar.start <= (bar.end or NOW)
    assert "uncertain" in acp("stats", str(folder)).stdout
    told = json.loads(acp("stats", str(folder), "--json").stdout)["collaborations"][0]
    assert "backward at event 3" in told["uncertain"]
    assert "uncertain: even" in acp("chart", str(folder)).stdout


def test_a_review_counts_from_the_event_that_submits_it(tmp_path: Path) -> None:
    """Not from the next change of some document, and not before it is submitted."""
    folder = folder_of(tmp_path, RUN[:3])
    at = datetime(2026, 5, 4, 12, 20, tzinfo=UTC).timestamp()
    for name in ("review.md", "proposal.md", "decisions.md", "readiness.md", "conclusion.md"):
        os.utime(folder / name, (at, at))
    with closing(_past(folder)) as past:
        changes = [each for each in counts_over_time(past) if each.what == "required changes"]
    assert [(each.at, each.new) for each in changes] == [
        (datetime(2026, 5, 4, 12, 25, tzinfo=UTC), 2)
    ]


def test_a_long_past_is_read_once_and_its_story_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many moments are counted at: else a log of 20,000 events takes minutes."""
    folder = folder_of(tmp_path, RUN)
    told: list[str] = []
    read: list[str] = []
    story, look = FolderCollaboration.story, FolderCollaboration.refresh

    def telling(self: FolderCollaboration) -> Story:
        told.append(self.key)
        return story(self)

    def reading(self: FolderCollaboration, now: datetime) -> Snapshot:
        read.append(self.key)
        return look(self, now)

    monkeypatch.setattr(FolderCollaboration, "story", telling)
    monkeypatch.setattr(FolderCollaboration, "refresh", reading)
    found = measure_folder(str(folder), Working(), NOW, draws=False)
    assert found.counts and found.drawn is None
    assert (told, read.count(str(folder))) == ([str(folder)], 1)


def test_a_chain_is_listed_once_and_has_a_total(acp: Acp, tmp_path: Path) -> None:
    first = folder_of(tmp_path, RUN)
    made = acp("continue", str(first), "--to", str(tmp_path / "next"))
    assert made.returncode == 0, made.stderr
    words = ["stats", str(first), str(tmp_path / "next"), "--chain"]
    head = acp(*words).stdout.splitlines()[0].split()
    assert head == ["cache", "next", "total"]
    told = json.loads(acp(*words, "--json").stdout)
    names = [each["name"] for each in told["collaborations"]]
    assert names == ["cache", "next"]
    events = [each["events"] for each in told["collaborations"]]
    assert told["total"]["events"] == sum(events)
    twice = json.loads(acp("stats", str(first), f"{first}/", "--json").stdout)
    assert len(twice["collaborations"]) == 1


def test_a_total_is_the_sum_of_what_is_recorded(tmp_path: Path) -> None:
    one = measured(folder_of(tmp_path, RUN))
    both = total_metrics([one, one])
    assert one.lead is not None and both.lead is not None
    assert both.lead.seconds == 2 * one.lead.seconds
    assert [each.turns for each in both.people] == [2 * each.turns for each in one.people]
    assert [each.median for each in both.people] == [each.median for each in one.people]
    assert [each.share for each in both.people] == [each.share for each in one.people]
    assert (both.reviews, both.cost, both.tokens) == (2 * one.reviews, None, None)
    assert total_metrics([one, replace(one, lead=None)]).lead is None


def test_of_many_rounds_the_last_are_told_one_by_one(tmp_path: Path) -> None:
    one = measured(folder_of(tmp_path, RUN))
    rounds = tuple((n, Span(60.0 * n, 0.0)) for n in range(1, 41))
    phases = tuple(replace(each, rounds=rounds) for each in one.phases if each.phase == "reviewing")
    shown = side_by_side([replace(one, phases=phases)])
    told = [
        each for each in shown if each.title.startswith("round ") or each.title[:7] == "rounds "
    ]
    assert [each.title for each in told] == [
        "rounds 1 to 35, median / longest", *(f"round {n}" for n in range(36, 41)),
    ]  # fmt: skip
    assert told[0].values == ("18 min / 35 min",)


def test_a_turn_that_only_the_state_tells_of_is_waited_for_in_the_figures_too(
    tmp_path: Path, acp: Acp
) -> None:
    """Two turns at the same time, one of them without an event: `show` and `stats` say the same."""
    two = {
        "turn_a": making.turn(turn_id="turn_a"),
        "turn_b": making.turn(turn_id="turn_b", assigned_role="dev", runtime_id="manual-dev"),
    }
    root = making.make_run(tmp_path / "run", of_state=making.state(active_turns=two))
    given = {"turn_id": "turn_a", "assigned_role": "pm"}
    begun = {"event_type": "turn_dispatched", "timestamp": making.AT, "run_id": making.RUN}
    making.write_lines(root / ".agentxchain/events.jsonl", begun | {"turn": given})
    shown = json.loads(acp("show", str(root), "--json").stdout)["snapshot"]
    people = json.loads(acp("stats", str(root), "--json").stdout)["collaborations"][0]
    waited = {
        each["participant"]: each for each in people["participants"] if each["waited_for_now"]
    }
    assert {each["participant"] for each in shown["waiting"]} == set(waited) == {"pm", "dev"}
    assert waited["pm"]["waited_for"] == waited["dev"]["waited_for"]
    assert [each["critical_share"] for each in waited.values()] == [0.0, 0.0]
