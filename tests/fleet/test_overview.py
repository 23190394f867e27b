"""The fleet's order, counts and short words, the same on the screen and in commands."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from acp_core.fleet import overview
from acp_core.fleet.overview import Group, Seen
from acp_core.model import (
    Finding,
    Matter,
    Participant,
    Phase,
    PhaseState,
    Runner,
    Severity,
    Snapshot,
    Status,
    Turn,
)
from acp_core.model.matter import decision

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def snapshot(key: str, status: Status = Status.ACTIVE, **more: object) -> Snapshot:
    given: dict[str, object] = {
        "key": f"/runs/{key}", "protocol": "toy", "dialect": "1", "name": key, "objective": "",
        "location": f"/runs/{key}", "as_of": NOW, "headline": "", "status": status,
        "phase": "talking",
    }  # fmt: skip
    return Snapshot(**(given | more))  # type: ignore[arg-type]


def need(name: str, minutes: float | None = None) -> Matter:
    return decision(name, "TOY", name, since=ago(minutes) if minutes is not None else None)


def see(one: Snapshot) -> Seen:
    """Somebody who acknowledged nothing and archived what is called old."""
    return Seen(one.needs, 0, one.name.startswith("old"))


def arranged(*snapshots: Snapshot, recent: bool = False) -> list[tuple[str, int]]:
    entries = overview.arrange(snapshots, see, recent=recent)
    return [(entry.snapshot.name, entry.depth) for entry in entries]


def test_what_needs_a_human_is_on_top_the_longest_wait_first() -> None:
    assert arranged(
        snapshot("done", Status.COMPLETED, changed=ago(5)),
        snapshot("done later", Status.BLOCKED, changed=ago(1)),
        snapshot("live b"),
        snapshot("live A"),
        snapshot("new need", needs=(need("x", 1),)),
        snapshot("old need", needs=(need("y", 90), need("z"))),
        snapshot("need without a time", needs=(need("w"),)),
    ) == [
        ("old need", 0),
        ("new need", 0),
        ("need without a time", 0),
        ("live A", 0),
        ("live b", 0),
        ("done later", 0),
        ("done", 0),
    ]


def test_what_is_live_may_stand_by_its_latest_change() -> None:
    live = [snapshot("a", changed=ago(9)), snapshot("b", changed=ago(1)), snapshot("c")]
    assert arranged(*live, recent=True) == [("b", 0), ("a", 0), ("c", 0)]


def test_a_part_stands_under_its_whole_and_its_need_counts_there() -> None:
    whole = snapshot("whole", parts=("/runs/part", "/runs/elsewhere"))
    part = snapshot("part", needs=(need("x", 3),))
    entries = overview.arrange([part, snapshot("alone"), whole], see)
    assert [(e.snapshot.name, e.depth, e.group) for e in entries] == [
        ("whole", 0, Group.NEEDS),
        ("part", 1, Group.NEEDS),
        ("alone", 0, Group.LIVE),
    ]
    assert [need.sentence for need in entries[0].needs] == ["part: x"]
    assert overview.tally(entries).sentence() == "1 needs you · 1 live · 0 done · 1 child run"


def test_parts_that_name_each_other_are_listed_once() -> None:
    one = snapshot("one", parts=("/runs/two",), needs=(need("x"),))
    two = snapshot("two", parts=("/runs/one", "/runs/two"))
    assert sorted(name for name, _ in arranged(one, two)) == ["one", "two"]


def test_the_counts_leave_out_what_is_archived_but_say_so() -> None:
    entries = overview.arrange(
        [
            snapshot("a", needs=(need("x"), need("y"))),
            snapshot("b", Status.COMPLETED),
            snapshot("c", Status.BLOCKED),
            snapshot("d", Status.UNKNOWN),
            snapshot("old", Status.COMPLETED),
        ],
        see,
    )
    counts = overview.tally(entries)
    assert counts._asdict() == {
        "need": 1, "person": 0, "live": 0, "unknown": 1, "blocked": 1, "done": 1, "archived": 1,
        "parts": 0,
    }  # fmt: skip
    assert sum(counts) == len(entries), "each row is counted once"
    assert counts.sentence() == "1 needs you · 0 live · 1 unknown · 1 blocked · 1 done"


def test_what_waits_for_people_and_does_not_need_you_is_not_called_live() -> None:
    """Somebody acknowledged that it is a person's turn: it still is not agents' work."""
    you = Participant("you", "human")
    alone = snapshot("alone", participants=(you,), turns=(Turn("you", "decide", ago(60 * 36)),))
    both = replace(
        alone, key="/runs/both", name="both", turns=(*alone.turns, Turn("bot", "write", ago(1)))
    )
    entries = overview.arrange([alone, both], see)
    assert [(e.name, e.group.title) for e in entries] == [
        ("alone", "waiting for a person"),
        ("both", "live"),
    ]
    assert (
        overview.tally(entries).sentence() == "0 need you · 1 waits for a person · 1 live · 0 done"
    )


def test_an_entry_that_looks_the_same_is_the_same_object() -> None:
    one = snapshot("one")
    [before] = overview.arrange([one], see)
    assert overview.arrange([one], see, {before.key: before}) == [before]
    [after] = overview.arrange([snapshot("one")], see, {before.key: before})
    assert after is not before and after.serial != before.serial


def test_a_phase_is_no_abbreviation_without_its_word() -> None:
    now = PhaseState.CURRENT
    phases = (Phase("cd", "CD code", now), Phase("decision_review", "decision review", now))
    assert overview.phase_of(snapshot("one", phase="cd", phases=phases)) == "CD code"
    later = snapshot("two", phase="decision_review", phases=phases)
    assert overview.phase_of(later) == "decision_review"


def test_who_is_waited_for_says_who_is_a_person() -> None:
    waiting = snapshot(
        "one",
        participants=(Participant("ann", "human"), Participant("bot", "agent")),
        turns=(Turn("ann", "review"), Turn("bot", "review"), Turn("ann", "decide")),
    )
    assert overview.waiting_for(waiting) == "ann (human), bot"
    assert overview.waiting_for(snapshot("two")) == "-"
    own = replace(waiting, turns=(Turn("you", "approve"),), needs=())
    assert overview.waiting_for(own) == "you"
    needs = (decision("k", "E1", "decide"),)
    assert overview.waiting_for(replace(waiting, turns=(), needs=needs)) == "you"


def test_who_is_waited_for_says_who_runs_it() -> None:
    waiting = snapshot(
        "one",
        participants=(Participant("ann", "human"), Participant("bot", "agent")),
        turns=(Turn("ann", "review"), Turn("bot", "review")),
        runners=(Runner("bot", "ben"),),
    )
    assert overview.waiting_for(waiting) == "ann (human), bot (run by ben)"
    conducted = replace(waiting, runners=(Runner("", "ben"), Runner("bot")))
    assert overview.waiting_for(conducted) == "ann (human), bot (run by ben, you)"
    others = replace(waiting, turns=(Turn("ann", "review"),))
    assert overview.waiting_for(others) == "ann (human) · run by ben"
    assert overview.waiting_for(replace(others, turns=())) == "run by ben"


def test_since_is_the_oldest_need_or_else_turn_or_else_phase() -> None:
    turns = (Turn("ann", "x", ago(5)), Turn("ben", "x", ago(7)))
    phase = {"since": ago(60)}
    for given, minutes in (
        (phase, 60),
        (phase | {"turns": turns}, 7),
        (phase | {"turns": turns, "needs": (need("x", 2),)}, 2),
        (phase | {"turns": turns, "needs": (need("x"),)}, 7),
    ):
        [entry] = overview.arrange([snapshot("one", **given)], see)
        assert overview.standing_since(entry) == ago(minutes)


def test_findings_are_said_shortly_the_worst_first() -> None:
    def found(*severities: Severity) -> Snapshot:
        return snapshot("one", findings=tuple(Finding("X", s, "m") for s in severities))

    bad, soft, hint = Severity.ERROR, Severity.WARNING, Severity.ADVICE
    assert overview.findings(found()) == ("-", None)
    assert overview.findings(found(hint, hint)) == ("2 advice", hint)
    assert overview.findings(found(hint, hint), 7) == ("2 adv", hint)
    assert overview.findings(found(hint, soft)) == ("1 warning", soft)
    assert overview.findings(found(soft, bad, bad)) == ("2 errors", bad)
    assert overview.findings(found(soft, bad, bad), 6) == ("2 err", bad)
    assert overview.findings(found(soft), 6) == ("1 warn", soft)


def test_it_is_found_by_words_in_any_order() -> None:
    found_by = overview.haystack(snapshot("Checkout", objective="Choose a QUEUE"))
    assert overview.matches(found_by, "queue check")
    assert not overview.matches(found_by, "queue billing")


def test_whose_need_it_is_is_known_and_what_the_whole_explains_is_not_said_twice() -> None:
    mine, theirs, same = need("mine"), need("theirs"), need("same")
    cause = Matter("A3", "the part is broken", explains=(same.key,))
    whole = snapshot("whole", parts=("/runs/part",), needs=(mine,), causes=(cause,))
    part = snapshot("part", needs=(same, theirs))
    first, second = overview.arrange((whole, part), see)
    named = theirs._replace(sentence="part: theirs")
    assert first.needs == (mine, named) and first.asker == whole.key
    assert second.needs == (same, theirs) and second.asker == part.key
    silent = snapshot("whole", parts=("/runs/part",))
    entry, _ = overview.arrange((silent, part), see)
    assert [need.sentence for need in entry.needs] == ["part: same", "part: theirs"]
    assert entry.asker == part.key


def test_those_of_one_name_are_told_apart_by_where_they_stand() -> None:
    def named(name: str, location: str, **more: object) -> Snapshot:
        return snapshot(location.strip("/"), name=name, location=location, **more)

    entries = overview.arrange(
        [
            named("export", "/runs/first/export"),
            named("Export", "/runs/second/export/"),
            named("api", "/runs/one"),
            named("api", "/other/one"),
            named("alone", "/runs/alone", parts=("/runs/runs/part",)),
            named("alone", "/runs/part"),
        ],
        see,
    )
    assert [entry.name for entry in entries] == [
        "alone", "alone", "api · other/one", "api · runs/one", "export · first", "Export · second",
    ]  # fmt: skip
    again = overview.arrange(
        [named("export", "/runs/first/export")], see, {each.key: each for each in entries}
    )
    assert [entry.name for entry in again] == ["export"]


def test_large_counts_are_grouped_as_all_numbers_of_the_screens_are() -> None:
    counts = overview.Counts(1_200, 0, 10_000, 0, 0, 2_500, 0, 1_001)
    assert counts.sentence() == "1,200 need you · 10,000 live · 2,500 done · 1,001 child runs"
