"""No change is lost between the reading of a collaboration and the watching of its folders."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path

from acp_core.diagnosis.observer import Observer
from acp_core.files.watch import Report, Watcher
from acp_core.fleet.member import Member
from acp_core.fleet.readings import BETWEEN_REPLACEMENTS, FOR_EACH_FOLDER, WatchList
from acp_core.fleet.workers import Mail, Workers

HOME, INSIDE, ELSEWHERE = Path("/fleet/one"), Path("/fleet/one/.state"), Path("/fleet/two")


def member(path: Path = HOME) -> Member:
    return Member(str(path), None, 0, Workers().lane(), Observer())


def test_a_change_that_was_heard_before_it_was_known_whose_it_is() -> None:
    watched = WatchList(Mail(), lambda: ())
    one = member()
    assert not watched.claim(one)
    assert list(watched.concerned([INSIDE, HOME])) == [one]
    one.watched = frozenset({HOME, INSIDE})
    assert watched.claim(one), "it has to be read again"
    assert list(watched.concerned([INSIDE, HOME])) == [one, one]
    assert not watched.claim(one), "once"


def test_what_is_claimed_by_several_concerns_each_until_it_leaves() -> None:
    watched = WatchList(Mail(), lambda: ())
    one, two = member(), member(ELSEWHERE)
    two.watched = frozenset({ELSEWHERE, HOME})
    assert not watched.claim(one) and not watched.claim(two)
    assert list(watched.concerned([HOME])) == [one, two]
    one.watched = frozenset()
    watched.claim(one)
    assert list(watched.concerned([HOME])) == [two]
    watched.release(two)
    assert list(watched.concerned([HOME, ELSEWHERE])) == []


def test_the_watcher_is_told_of_all_folders_at_once_when_they_are_others() -> None:
    heard: list[Report] = []
    watcher = Watcher(heard.append)
    told: list[frozenset[Path]] = []
    watcher.replace = lambda folders: told.append(frozenset(folders))  # type: ignore[method-assign]
    watched = WatchList(Mail(), lambda: [ELSEWHERE])
    one = member()
    watched.claim(one)
    watched.settle()
    assert told == [], "nobody watches yet"
    watched.begin(watcher)
    watched.settle()
    watched.settle()
    one.watched = frozenset({HOME, INSIDE})
    watched.claim(one)
    watched.settle()
    watched.release(one)
    watched.settle()
    assert told == [{HOME, ELSEWHERE}, {HOME, INSIDE, ELSEWHERE}, {ELSEWHERE}]
    watcher.close()


def test_the_more_folders_there_are_the_less_often_all_are_watched_anew() -> None:
    """Every replacement looks at each folder, and has every collaboration read again."""
    pauses: list[float] = []

    class Paces(Mail):
        def later(self, name: Hashable, delay: float, function: Callable[[], object]) -> None:
            pauses.append(delay)

    watcher = Watcher(lambda report: None)
    watcher.replace = lambda folders: None  # type: ignore[method-assign]
    for many in (10, 10_000):
        watched = WatchList(Paces(), lambda many=many: [HOME / str(n) for n in range(many)])  # type: ignore[misc]
        watched.begin(watcher)
        watched.settle()
    assert pauses == [BETWEEN_REPLACEMENTS, 10_000 * FOR_EACH_FOLDER]
