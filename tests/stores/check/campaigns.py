"""The check as campaigns of `tests.faults`: one case is one seed, for each engine."""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.faults.campaign import Campaign, Case
from tests.stores.check.backends import Backend, GitBackend, PostgresBackend
from tests.stores.check.forking import Forks
from tests.stores.check.history import History
from tests.stores.check.judging import Outcome, judge
from tests.stores.check.planning import GIT, POSTGRES, Plan, plan
from tests.stores.check.running import carry_out
from tests.support.postgres import NoServer, running

Opened = Callable[[Path, int], Backend]


def played(planned: Plan, place: Path, opened: Opened, forks: Forks) -> History:
    """Carry a plan out, and judge what came of it.

    Raises:
        AssertionError: something does not hold.
    """
    backend = opened(place, len(planned.hosts))
    try:
        history, players = carry_out(planned, place, backend, forks)
        backend.check()
        folders = {each.plan.name: each.host.folder for each in players}
        wrong = judge(
            history, Outcome(backend.log(), backend.revisions(), backend.contents(), folders)
        )
        for each in players:
            code, said = each.run("validate", each.folder)
            if code not in (0, 1):
                wrong.append(f"{each.plan.name} is not valid: {said}")
        assert not wrong, f"seed {planned.seed}: " + "\n".join(wrong[:10])
        return history
    finally:
        backend.close()
        with contextlib.suppress(OSError):
            shutil.rmtree(place)


def totals(histories: list[History]) -> str:
    """What was done in runs, in a line."""
    counted: Counter[str] = Counter()
    for each in histories:
        counted.update(each.done)
        counted["looks of readers"] += sum(seen.looks for seen in each.seen.values())
    return ", ".join(f"{counted[name]} {name}" for name in sorted(counted))


def _cases(engine: str, opened: Opened, place: Path, seed: int) -> Iterator[Case]:
    histories: list[History] = []
    forks = Forks(place / "commands")
    try:
        for number in itertools.count(seed):
            planned = plan(number, engine)
            run = partial(_run, planned, place / str(number), opened, forks, histories)
            yield Case(f"{engine}, seed {number}", run)
    finally:
        forks.close()
        print(f"{engine}, {len(histories)} seeds without failure: {totals(histories)}", flush=True)


def _run(planned: Plan, place: Path, opened: Opened, forks: Forks, told: list[History]) -> None:
    told.append(played(planned, place, opened, forks))


def git_cases(place: Path, seed: int) -> Iterator[Case]:
    """One run after the other over git, from a seed on."""
    yield from _cases(GIT, GitBackend, place, seed)


def postgres_cases(place: Path, seed: int) -> Iterator[Case]:
    """The same over PostgreSQL; none where no server can be run."""
    try:
        import psycopg  # noqa: F401

        started = running()
        server = started.__enter__()
    except (ImportError, NoServer):
        return
    try:
        yield from _cases(POSTGRES, lambda _, hosts: PostgresBackend(server, hosts), place, seed)
    finally:
        started.__exit__(None, None, None)


SHARED_GIT = Campaign(
    "stores-git", "hosts that share over git, killed, cut off and misled by their store", git_cases
)
SHARED_POSTGRES = Campaign(
    "stores-postgresql", "the same over PostgreSQL, whose server is killed, too", postgres_cases
)
