"""How long phases lasted is counted by what is new, and is what counting everything gives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model import Phase, PhaseState, Visit
from acp_tui.widgets.phase_rail import Times

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MOMENTS = st.none() | st.integers(-1000, 1000).map(lambda s: NOW + timedelta(seconds=s))
VISITS = st.builds(lambda entered, left: Visit(entered, left, 1), MOMENTS, MOMENTS)


def phase(visits: list[Visit]) -> Phase:
    return Phase("reviewing", "reviewing", PhaseState.CURRENT, tuple(visits))


def everything(visits: list[Visit], now: datetime) -> float | None:
    """The same, counted anew."""
    known = [
        max(0.0, ((visit.left or now) - visit.entered).total_seconds())
        for visit in visits
        if visit.entered is not None
    ]
    return sum(known) if known else None


@given(st.lists(st.tuples(st.lists(VISITS, max_size=4), st.integers(0, 5)), max_size=8))
@settings(max_examples=200)
def test_visits_that_come_end_or_are_others(steps: list[tuple[list[Visit], int]]) -> None:
    times, visits, now = Times(), [], NOW
    for new, kept in steps:
        if new and visits:  # the last one ends, as another object
            visits = [*visits[:-1], Visit(visits[-1].entered, now, 1)]
        visits = [*visits[: len(visits) - (kept if kept > 3 else 0)], *new]
        now += timedelta(seconds=7)
        assert times.spent(phase(visits), now) == everything(visits, now)


def test_what_was_counted_is_not_looked_at_again() -> None:
    visits = [Visit(NOW, NOW + timedelta(seconds=1), 1) for _ in range(1000)]
    times = Times()
    assert times.spent(phase(visits), NOW) == 1000
    asked: list[int] = []

    class Watched(tuple[Visit, ...]):
        """Visits that note how many of them are looked at."""

        def __getitem__(self, index):  # type: ignore[no-untyped-def]
            found = super().__getitem__(index)
            asked.append(len(found) if isinstance(index, slice) else 1)
            return found

        def __iter__(self):  # type: ignore[no-untyped-def]
            asked.append(len(self))
            return super().__iter__()

    more = Phase("reviewing", "reviewing", PhaseState.CURRENT, Watched([*visits, *visits[:2]]))
    assert times.spent(more, NOW) == 1002
    assert sum(asked) < 10
