"""Requests are answered once, for what was shown, by a person and by nobody that asks."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents.live import answers
from acp_core.agents.live.requests import parse
from acp_core.agents.live.turn import MARK
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.person.permissions import Verdict
from tests.agents.live import messages
from tests.agents.live.asking import asking
from tests.agents.support import ROOT

ALLOW, REJECT = Verdict.ALLOW, Verdict.REJECT


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    (tmp_path / "checkout").mkdir()


def recorded() -> list[dict[str, Any]]:
    text = (answers.root() / "answered.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_an_allowed_command_runs_and_it_is_recorded_who_allowed_it(tmp_path: Path) -> None:
    with asking(tmp_path / "checkout", "touch made.txt") as program:
        opened = program.opened
        answers.answer(opened, ALLOW, "ann", utc_now())
        assert program.end().startswith("allow by ann")
    assert (tmp_path / "checkout" / "made.txt").exists()
    assert answers.waiting() == ()
    (line,) = recorded()
    assert (line["state"], line["by"], line["command"]) == ("allow", "ann", "touch made.txt")
    assert (line["participant"], line["digest"]) == ("reviewer", opened.request.digest)


def test_a_rejected_command_does_not_run_and_the_message_arrives(tmp_path: Path) -> None:
    with asking(tmp_path / "checkout", "touch made.txt") as program:
        answers.answer(program.opened, REJECT, "ann", utc_now(), "use git")
        assert program.end() == "reject by ann: use git"
    assert not (tmp_path / "checkout" / "made.txt").exists()


def test_only_the_first_answer_counts() -> None:
    request = parse(messages.shell("claude", "ls"))
    opened = answers.publish("/checkout", "reviewer", request, attended=True)
    answers.answer(opened, REJECT, "ann", utc_now())
    with pytest.raises(Refused, match="has been answered already"):
        answers.answer(opened, ALLOW, "ben", utc_now())


def test_an_answer_to_something_else_than_what_was_shown_is_refused() -> None:
    request = parse(messages.shell("claude", "touch made.txt"))
    opened = answers.publish("/checkout", "reviewer", request, attended=True)
    shown = replace(opened, request=parse(messages.shell("claude", "ls")))
    with pytest.raises(Refused, match="not the one that was shown"):
        answers.answer(shown, ALLOW, "ann", utc_now())
    assert [each.id for each in answers.waiting()] == [opened.id]


def test_a_request_whose_program_was_killed_is_open_no_more(tmp_path: Path) -> None:
    with asking(tmp_path / "checkout", "touch made.txt") as program:
        opened = program.opened
        program.process.kill()
        program.process.wait()
        assert answers.waiting() == ()
        with pytest.raises(Refused, match="no longer open"):
            answers.answer(opened, ALLOW, "ann", utc_now())
    request = parse(messages.shell("claude", "ls"))
    answers.publish("/checkout", "reviewer", request, attended=True)  # takes away what it left
    assert not answers.is_published(opened)
    assert recorded()[-1]["state"] == "withdrawn"


def test_attended_a_request_is_rejected_after_its_time_and_unattended_it_stays_open() -> None:
    request = parse(messages.shell("claude", "ls"))
    attended = answers.publish("/checkout", "reviewer", request, attended=True)
    later = utc_now() + timedelta(minutes=15, seconds=1)
    assert answers.taken(attended, utc_now()) is None
    with pytest.raises(Refused, match="the time for this request is over"):
        answers.answer(attended, ALLOW, "ann", later)
    given = answers.taken(attended, later)
    assert given is not None and (given.verdict, given.by) == (REJECT, answers.ACP)
    unattended = answers.publish("/checkout", "reviewer", request, attended=False)
    assert answers.taken(unattended, later + timedelta(days=9)) is None


def test_who_answers_in_the_last_moment_is_not_overruled() -> None:
    request = parse(messages.shell("claude", "ls"))
    opened = answers.publish("/checkout", "reviewer", request, attended=True)
    answers.answer(opened, ALLOW, "ann", utc_now())
    given = answers.taken(opened, utc_now() + timedelta(minutes=16))
    assert given is not None and (given.verdict, given.by) == (ALLOW, "ann")


def test_requests_of_one_collaboration_are_listed_by_any_of_its_paths(tmp_path: Path) -> None:
    request = parse(messages.shell("claude", "ls"))
    answers.publish(str(tmp_path / "checkout"), "reviewer", request, attended=True)
    (tmp_path / "link").symlink_to(tmp_path / "checkout")
    assert len(answers.waiting(str(tmp_path / "link"))) == 1
    assert answers.waiting(str(tmp_path)) == ()


def test_nobody_else_can_read_or_write_them() -> None:
    request = parse(messages.shell("claude", "ls"))
    opened = answers.publish("/checkout", "reviewer", request, attended=True)
    answers.answer(opened, ALLOW, "ann", utc_now())
    answers.record("/checkout", "reviewer", request, "allow", answers.ACP, utc_now())
    assert stat.S_IMODE(answers.root().stat().st_mode) == 0o700
    for path in answers.root().iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"id": "0123456789abcdef"}', "[" * 9000, '{"id": 7}']
)
def test_what_is_no_request_is_none(text: str) -> None:
    answers.root().mkdir(parents=True)
    (answers.root() / "0123456789abcdef.json").write_text(text, encoding="utf-8")
    (answers.root() / "fedcba9876543210.json").symlink_to("/etc/passwd")
    assert answers.waiting() == ()


def test_a_request_under_another_name_than_its_own_is_none() -> None:
    request = parse(messages.shell("claude", "ls"))
    opened = answers.publish("/checkout", "reviewer", request, attended=True)
    path = answers.root() / f"{opened.id}.json"
    path.rename(path.with_name("0123456789abcdef.json"))
    assert answers.waiting() == ()


DECIDE = (
    "from acp_core.agents.live.answers import refuse_inside_a_session as r\n"
    "from acp_core.model.errors import Refused\n"
    "try: r()\n"
    "except Refused: print('refused')\n"
    "else: print('free')\n"
)


def decide(**variables: str) -> str:
    """What a command that decides says, started from a shell in the background."""
    env = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    words = ["sh", "-c", 'env -u ACP_LIVE_SESSION "$0" -c "$1"; true', sys.executable, DECIDE]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_a_command_that_decides_refuses_below_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    assert decide() == "free"
    assert decide(ACP_LIVE_SESSION="reviewer") == "refused"  # by the shell above it
    answers.refuse_inside_a_session()
    monkeypatch.setenv(MARK, "reviewer")
    with pytest.raises(Refused, match="session cannot decide"):
        answers.refuse_inside_a_session()


def test_a_command_below_the_process_that_asks_refuses_without_any_mark() -> None:
    request = parse(messages.shell("claude", "ls"))
    opened = answers.publish("/checkout", "reviewer", request, attended=True)
    assert decide() == "refused"
    answers.close(opened, None)
    assert decide() == "free"


def test_the_record_begins_anew_where_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LARGEST", 100)
    request = parse(messages.shell("claude", "ls"))
    for _ in range(2):
        answers.record("/checkout", "reviewer", request, "allow", answers.ACP, utc_now())
    assert (answers.root() / "answered.1.jsonl").exists()
