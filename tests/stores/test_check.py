"""The check of shared stores: short runs of it, eight reviewers at once, and that it notices what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.stores.check.backends import Backend, GitBackend, PostgresBackend, Revision
from tests.stores.check.campaigns import played
from tests.stores.check.forking import Forks
from tests.stores.check.history import OK, REFUSED, UNKNOWN, Attempt, History, Seen
from tests.stores.check.judging import Outcome, judge
from tests.stores.check.planning import GIT, POSTGRES, plan
from tests.stores.hosts import ID, Host
from tests.support.postgres import Server


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Processes of all runs of this module."""
    made = Forks(tmp_path_factory.mktemp("commands"))
    yield made
    made.close()


@pytest.mark.slow
def test_a_short_run_over_git(forks: Forks, tmp_path: Path) -> None:
    history = played(plan(2, GIT, hosts=3, acts=1), tmp_path / "run", GitBackend, forks)
    assert history.done[OK] >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_over_git(seed: int, forks: Forks, tmp_path: Path) -> None:
    played(plan(seed, GIT), tmp_path / "run", GitBackend, forks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_run_over_postgresql(
    seed: int, forks: Forks, tmp_path: Path, mortal_postgres: Server
) -> None:
    played(
        plan(seed, POSTGRES),
        tmp_path / "run",
        lambda _, hosts: PostgresBackend(mortal_postgres, hosts),
        forks,
    )


@pytest.mark.slow
def test_eight_reviewers_at_once_over_git(forks: Forks, tmp_path: Path) -> None:
    _eight(GitBackend(tmp_path / "store", 9), forks, tmp_path)


@pytest.mark.slow
def test_eight_reviewers_at_once_over_postgresql(
    forks: Forks, tmp_path: Path, postgres: Server
) -> None:
    _eight(PostgresBackend(postgres, 9), forks, tmp_path)


def _eight(backend: Backend, forks: Forks, place: Path) -> None:
    """Nobody is refused, and all reviews are in, in the order of their events, on every host."""
    names = [f"reviewer{number}" for number in range(8)]
    hosts = [Host(name, place) for name in ("writer", *names)]
    first, *others = hosts

    def must(host: Host, *words: str) -> str:
        code, said = forks.run(words, host.env)
        assert code == 0, (host.name, said)
        return said

    def join(host: Host) -> None:
        must(host, "join", f"{backend.address(hosts.index(host))}#{ID}", str(host.folder))

    def review(host: Host) -> int:
        words = ("--reply-to", "2", "--review", f"By {host.name}.", "--json")
        said = must(host, *host.event(host.name, "review_submitted", *words))
        return int(json.loads(said.splitlines()[0])["seq"])

    def read(host: Host) -> None:
        must(host, "sync", str(host.folder), "--once")

    people = [word for each in hosts for word in ("--participant", each.name)]
    must(
        first,
        *("init", "--folder", str(first.folder), *people),
        *("--objective", "Choose", "--completion", "Chosen"),
    )
    try:
        must(first, "share", str(first.folder), backend.address(0), "--id", ID, "--yes")
        first.write("proposal.md", "# The proposal\n")
        must(first, *first.event("writer", "proposal_submitted", "--reply-to", "1"))
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(join, others))
            told = dict(zip(names, pool.map(review, others), strict=True))
            list(pool.map(read, hosts))
        assert sorted(told.values()) == list(range(3, 11))
        assert {each["from"]: each["seq"] for each in first.log()[2:]} == told
        text = first.read("review.md").decode()
        places = [text.index(f"By {name}.") for name in sorted(told, key=told.__getitem__)]
        assert places == sorted(places)
        assert all(each.files() == first.files() for each in others)
    finally:
        backend.close()


@pytest.mark.parametrize("engine", [GIT, POSTGRES])
def test_a_seed_is_a_plan(engine: str) -> None:
    assert plan(7, engine) == plan(7, engine) != plan(8, engine)


def _line(seq: int, token: str, at: int = 0, **more: object) -> bytes:
    event = {
        "seq": seq,
        "from": "a",
        "at": f"2026-01-01T00:00:{at or seq:02}Z",
        "summary": f"{token}.",
    }
    return json.dumps(event | more).encode() + b"\n"


def _told(token: str, seq: int, began: float, outcome: str = OK, **more: object) -> Attempt:
    made = Attempt(token, "h0", "a", "plain", began, began + 0.5, outcome, seq)
    return made._replace(**more)  # type: ignore[arg-type]


class Story:
    """A run in which all is well, to be made worse."""

    def __init__(self, place: Path) -> None:
        self.lines = [_line(1, "begun"), _line(2, "one"), _line(3, "two")]
        self.history = History([_told("one", 2, 0), _told("two", 3, 1)])
        self.folder = place / "h0"
        self.folder.mkdir()
        (self.folder / "review.md").write_bytes(b"")
        self.host = "h0"
        self.contents = b""

    def judged(self) -> str:
        """What is found."""
        log = b"".join(self.lines)
        if not (self.folder / "events.jsonl").exists():
            (self.folder / "events.jsonl").write_bytes(log)
        sizes = [len(b"".join(self.lines[:number])) for number in range(1, len(self.lines) + 1)]
        changes = [Revision(self.host, size) for size in sizes]
        return "\n".join(
            judge(self.history, Outcome(log, changes, self.contents, {"h0": self.folder}))
        )


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_nothing_is_found_where_all_is_well(story: Story) -> None:
    story.history.attempts.append(_told("three", 0, 3, REFUSED))
    story.history.attempts.append(_told("four", 0, 3, UNKNOWN))
    assert story.judged() == ""


def test_a_lost_event_is_found(story: Story) -> None:
    story.history.attempts.append(_told("three", 4, 3))
    assert story.judged() == "three was acknowledged at seq 4 and is at none"


def test_an_event_at_another_seq_is_found(story: Story) -> None:
    story.history.attempts[1] = _told("two", 4, 1)
    assert "two was acknowledged at seq 4 and is at [3]" in story.judged()


def test_a_doubled_event_is_found(story: Story) -> None:
    story.lines.append(_line(4, "two"))
    assert "two is in the log 2 times: [3, 4]" in story.judged()


def test_a_refused_event_that_is_there_is_found(story: Story) -> None:
    story.history.attempts[1] = _told("two", 0, 1, REFUSED, code=8, said="no")
    assert "two was refused and is in the log" in story.judged()


def test_a_gap_is_found(story: Story) -> None:
    story.lines.append(_line(5, "four"))
    assert "the seq has gaps: [1, 2, 3, 5]" in story.judged()


def test_a_time_that_goes_back_is_found(story: Story) -> None:
    story.lines.append(_line(4, "four", at=1))
    assert "the time goes back" in story.judged()


def test_a_key_twice_is_found(story: Story) -> None:
    story.lines += [_line(4, "four", key="k"), _line(5, "five", key="k")]
    assert "a key is in the log twice" in story.judged()


def test_an_event_before_one_that_was_acknowledged_earlier_is_found(story: Story) -> None:
    story.history.attempts[:] = [_told("one", 2, 5), _told("two", 3, 1)]
    assert "one at seq 2 was begun after two was acknowledged" in story.judged()


def test_a_host_that_acts_without_the_lease_is_found(story: Story) -> None:
    story.history.attempts[1] = _told("two", 3, 1, host="h1")
    assert "a acts on h0, and seq 3 comes from h1" in story.judged()
    story.history.attempts[1] = _told("two", 3, 1, host="h1", take=True)
    assert "a acts on h0" not in story.judged()


def test_a_change_by_another_host_is_found(story: Story) -> None:
    story.host = "h9"
    assert "one of h0 was published by h9" in story.judged()


def test_a_host_that_is_ahead_of_the_store_is_found(story: Story) -> None:
    story.history.seen["h0"] = Seen(lines={_line(4, "four")})
    assert "h0 showed an event that the store does not have" in story.judged()
    story.history.seen["h0"] = Seen(prefix=b"something else")
    assert "h0 knew a log that is not the store's" in story.judged()


def test_a_folder_that_lacks_something_is_found(story: Story) -> None:
    (story.folder / "events.jsonl").write_bytes(story.lines[0])
    assert "h0 does not hold the store's log" in story.judged()


def test_a_lost_edit_is_found_and_a_kept_one_is_none(story: Story) -> None:
    story.history.edits.append(("h0", "Edit one."))
    assert story.judged() == "h0 has lost: Edit one."
    (story.folder / ".acp" / "kept").mkdir(parents=True)
    (story.folder / ".acp" / "kept" / "x").write_bytes(b"Edit one.\n")
    assert story.judged() == ""


def test_a_lost_line_of_a_script_is_found(story: Story) -> None:
    story.history.attempts.append(_told("three", 0, 3, UNKNOWN, kind="rogue"))
    assert story.judged() == "a script's line of h0 is lost: three"


def test_a_doubled_review_is_found(story: Story) -> None:
    story.history.edits.append(("none:h0", "Review one."))
    (story.folder / "review.md").write_bytes(b"Review one.\nReview one.\n")
    assert story.judged() == "review.md does not hold once: Review one."
