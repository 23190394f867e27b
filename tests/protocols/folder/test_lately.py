"""What is told of the end of a log is what the whole of it tells, however little is looked at."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from acp_core.model import Visit
from acp_core.protocols.folder.matters import gates
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema.records import V1, Entry, parse_time
from acp_core.protocols.folder.state import Machine
from acp_core.protocols.folder.view import story
from acp_core.protocols.folder.view.story import Pace
from acp_core.protocols.folder.view.timeline import LABELS, Rail

PEOPLE = ("ana", "ben")
BEGIN = datetime(2026, 1, 2, tzinfo=UTC)
NUMBERS = st.none() | st.integers(1, 40)
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(("ana", "ben", "zoë")),
        st.sampled_from(("proposal_submitted", "review_submitted", "blocked")),
        NUMBERS,
        st.integers(-3, 30),
        st.none() | NUMBERS,
    ),
    max_size=40,
)


def entries(
    drawn: list[tuple[str, str, int | None, int, int | None]], *, regular: bool
) -> list[Entry]:
    """Events of which the seqs are those of a sound log, or any."""
    made = []
    for place, (sender, event, reply_to, minutes, seq) in enumerate(drawn, 1):
        at = (BEGIN + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
        number = place if regular else seq
        made.append(Entry(place, number, sender, event, at, "-", None, reply_to, None, None, None))
    return made


def took(latest: list[Entry], participant: str) -> tuple[float, ...]:
    """The latest turns, counted by looking at all of those events."""
    by_seq = {entry.seq: entry for entry in latest if entry.seq is not None}
    found: deque[float] = deque(maxlen=3)
    for entry in latest:
        answered = by_seq.get(entry.reply_to) if entry.reply_to is not None else None
        if entry.sender != participant or answered is None:
            continue
        began, ended = parse_time(answered.at), parse_time(entry.at)
        if began is not None and ended is not None and ended >= began:
            found.append((ended - began).total_seconds())
    return tuple(found)


@given(EVENTS, st.booleans(), st.integers(1, 20), st.integers(1, 9))
def test_the_latest_turns(drawn, regular: bool, looked: int, step: int) -> None:  # type: ignore[no-untyped-def]
    made = entries(drawn, regular=regular)
    history, known = History(PEOPLE, V1), Pace()
    before = story._LOOKED, story._KEPT
    story._LOOKED, story._KEPT = looked, 3
    try:
        for start in range(0, len(made), step):
            history.feed(made[start : start + step])
            for name in ("ana", "ben", "zoë", "nobody"):
                latest = made[: start + step][-looked:]
                assert known.of(history, name) == took(latest, name)
    finally:
        story._LOOKED, story._KEPT = before


class Folder:
    """As much of what was read of a folder as rounds are counted from."""

    def __init__(self, history: History) -> None:
        self.history = history

    def path(self, name: str) -> str:
        return "/nowhere/" + name


@given(
    EVENTS,
    st.booleans(),
    st.integers(1, 20),
    st.dictionaries(st.integers(1, 40), st.integers(0, 3)),
)
def test_the_latest_rounds(drawn, regular: bool, looked: int, asked: dict[int, int]) -> None:  # type: ignore[no-untyped-def]
    made = entries(drawn, regular=regular)
    history = History(PEOPLE, V1)
    history.feed(made)
    latest = made[-looked:]
    first = min((entry.seq for entry in latest if entry.seq is not None), default=0)
    least: list[int] = []

    def of_file(path: str, of: object, number: int) -> dict[int, int]:
        least.append(number)
        return asked

    before = gates._LOOKED, gates._asked
    gates._LOOKED, gates._asked = looked, of_file  # type: ignore[assignment]
    try:
        found = list(gates.required(Folder(history)))  # type: ignore[arg-type]
    finally:
        gates._LOOKED, gates._asked = before
    named: list[list[int]] = []
    for entry in latest:
        if entry.event == "proposal_submitted":
            named.append([])
        elif entry.event == "review_submitted" and named and entry.seq in asked:
            named[-1].append(asked[entry.seq])
    assert found[::-1] == [sum(each) for each in named if each]
    assert not made or least == [first - first % looked]


def review(seq: int, changes: int) -> str:
    return (
        f"## 2026-01-02 - ana - seq {seq}\n\n### Required Changes\n\n" + "- One.\n" * changes + "\n"
    )


LINES = st.lists(
    st.sampled_from(("# Review\n", "Text.\n", "## Notes\n", "#\n", "\n", "## seq x\n"))
)


@given(st.lists(st.tuples(LINES, st.integers(0, 3)), max_size=12), st.integers(0, 14))
def test_older_reviews_are_not_gone_through(written, least: int) -> None:  # type: ignore[no-untyped-def]
    texts = ["".join(lines) + review(seq, n) for seq, (lines, n) in enumerate(written, 1)]
    text = "# Review\n\n" + "".join(texts)
    every = gates.required_changes(text)
    found = gates.required_changes(gates._latest(text, least), least)
    assert found == {seq: n for seq, n in every.items() if seq >= least}
    assert gates._latest(text, least).count(" - seq ") <= max(1, len(texts) - max(0, least - 2))


PHASES = st.lists(st.sampled_from((*LABELS, "blocked")), max_size=30)


@given(PHASES, st.lists(st.integers(1, 5), max_size=30))
def test_stays_share_what_ended_and_stay_as_they_were(phases: list[str], steps: list[int]) -> None:
    machine, rail = Machine(PEOPLE, V1), Rail()
    starts = [
        (phase, n, n, (BEGIN + timedelta(minutes=n)).strftime("%Y-%m-%dT%H:%M:%SZ"))
        for n, phase in enumerate(phases, 1)
    ]
    kept, taken = [], 0
    for step in [*steps, len(starts)]:
        machine.starts.extend(starts[taken : taken + step])
        taken = min(len(starts), taken + step)
        machine.phase = machine.starts[-1][0] if machine.starts else ""
        shown = rail.phases(machine)
        assert rail.phases(machine)[0] is shown[0]  # nothing is new: the very same
        kept.append((taken, shown, Rail().phases(machine)))
    for taken, shown, anew in kept:  # later events changed nothing in what was shown before
        assert shown == anew
        ends = [parse_time(at) for _, _, _, at in starts[1:taken]]
        for phase in shown:
            expected = [
                Visit(parse_time(at), ends[n] if n < len(ends) else None, number)
                for n, (name, number, _, at) in enumerate(starts[:taken])
                if name == phase.id
            ]
            assert [*phase.visits] == expected
            assert [phase.visits[n] for n in range(-len(expected), 0)] == expected
            assert list(phase.visits[1:3]) == expected[1:3]
            assert len(phase.visits) == len(expected)
            known = [v for v in expected if v.entered and v.left]
            assert phase.spent == (
                sum((v.left - v.entered).total_seconds() for v in known) if known else None
            )
    for (_, one, _), (_, other, _) in pairwise(kept):
        for a, b in zip(one, other, strict=True):
            assert (a.visits == b.visits) == ([*a.visits] == [*b.visits])
            assert a.visits != b.visits or hash(a.visits) == hash(b.visits)
