"""How often the process that synchronizes looks at a repository, and what it tells of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from acp_core.stores import git
from acp_core.stores.address import parse
from acp_core.stores.engine import Change
from acp_core.stores.git import NEWS_LOOK, NEWS_QUIET, QUIET_NEWS_LOOK, GitEngine, GitNews
from tests.stores.hosts import repository


class Clock:
    """A clock that goes on only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_quiet_repository_is_looked_at_less_often_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, clock = repository(tmp_path), Clock()
    fake = SimpleNamespace(monotonic=lambda: clock.now, sleep=clock.sleep)
    monkeypatch.setattr(git, "time", fake)
    engine = GitEngine(parse(f"{store}#one"))
    line = json.dumps({"seq": 1}).encode() + b"\n"
    tips = {"one": engine.publish(None, Change(line, line, 1, b"{}")).id}
    heard = GitNews(parse(f"{store}#one"), "here")

    def pause() -> float:
        before = clock.now
        assert not heard.wait(lambda: tips, 5.0)
        return clock.now - before

    pause()
    begun = clock.now
    while clock.now < begun + NEWS_QUIET:
        assert pause() == NEWS_LOOK
    assert [pause() for _ in range(3)] == [QUIET_NEWS_LOOK] * 3

    more = json.dumps({"seq": 2}).encode() + b"\n"
    tip = engine.publish(engine.read(None).tip, Change(line + more, more, 2, b"{}"))
    assert heard.wait(lambda: tips, 5.0) == {"one"}
    tips["one"] = tip.id
    assert pause() == NEWS_LOOK
