"""``acp why``, as somebody runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.protocols.folder.support import change_protocol, edit, make_v1
from tests.protocols.workspaces.making import agent, returned, run
from tests.support import toy


@pytest.fixture
def lagging(acp: Acp) -> Path:
    folder = make_v1(acp.home / "cache", "reviewing", blocked="")
    change_protocol(folder, currentPhase="drafting", waitingFor=["server"])
    return folder


def test_each_cause_has_evidence_and_the_command_that_mends_it(acp: Acp, lagging: Path) -> None:
    ended = acp("why", "cache")
    assert ended.returncode == 1
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("cache — reviewing. Waiting for reader and reviewer — protocol.json")
    assert lines[2].startswith("1. protocol.json is out of date with the event log")
    assert "(A4, seen, since " in lines[2]
    assert lines[3].startswith("   - ACP150 protocol.json: ")
    assert "   → Rebuild protocol.json from the log" in lines
    assert "     acp act cache repair" in lines
    assert any(line.startswith("2. No activity since") for line in lines)


def test_as_json(acp: Acp, lagging: Path) -> None:
    ended = acp("why", str(lagging), "--json")
    assert ended.returncode == 1
    told = json.loads(ended.stdout)
    assert (told["schema"], told["wanted"]) == ("acp.why/1", True)
    first = told["snapshot"]["causes"][0]
    assert (first["code"], first["remedy"], first["certain"]) == ("A4", "repair", True)
    assert first["command"].endswith("cache repair")


def test_the_command_mends_it(acp: Acp, lagging: Path) -> None:
    mended = acp("act", "cache", "repair", "--yes")
    assert mended.returncode == 0, mended.stderr
    assert "Fixed" in mended.stdout
    assert "A4" not in acp("why", "cache").stdout
    (journal,) = (acp.home / "state" / "acts").iterdir()
    assert json.loads(journal.read_text())["action"] == "repair"


def test_the_fleet_says_the_same(acp: Acp, lagging: Path) -> None:
    table = acp("status").stdout
    assert "1 needs you" in table
    assert "protocol.json is out of date with the event log" in table
    assert ": acp act cache repair" in table
    page = acp("show", "cache").stdout
    assert "→ acp act cache repair" in page
    told = json.loads(acp("status", "--json").stdout)["collaborations"][0]
    assert [each["code"] for each in told["causes"]] == ["A4", "E9"]
    assert [each["code"] for each in told["needs"]] == ["A4", "E9"]


def test_nothing_is_stuck(acp: Acp) -> None:
    make_v1(acp.home / "done", "completed")
    ended = acp("why", "done")
    assert (ended.returncode, ended.stdout.splitlines()[1:]) == (
        0,
        ["Completed: nothing is left to do."],
    )
    toy.make(acp.home / "talk")
    ended = acp("why", "talk")
    assert ended.returncode == 0


def test_no_collaboration(acp: Acp) -> None:
    ended = acp("why", "nowhere")
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1


def test_what_a_person_must_choose_stands_in_capitals_in_the_command(acp: Acp) -> None:
    root = acp.home / "queues"
    run(root)
    agent(root, "ben", "partial")
    ended = acp("why", "queues")
    lines = [line.strip() for line in ended.stdout.splitlines()]
    assert "acp act queues triage --agent ben --decision DECISION --reason TEXT" in lines
    assert "you choose DECISION and TEXT: add --help to see what is possible" in lines
    assert "or: acp act queues rerun --agent ben" in lines
    first = json.loads(acp("why", "queues", "--json").stdout)["snapshot"]["causes"][0]
    assert first["choose"] == ["decision", "reason"]
    command = "act queues triage --agent ben --decision accept --reason Enough --yes"
    done = acp(*command.split())
    assert done.returncode == 0, done.stderr
    assert "E52" not in acp("why", "queues").stdout


def test_what_must_be_chosen_is_said_below_each_command_that_has_it_in_capitals(acp: Acp) -> None:
    root = acp.home / "queues"
    run(root)
    agent(root, "ben", "partial")
    (root / "returns/ben-part.json").write_text(json.dumps(returned("ben")))  # it succeeded?
    lines = [line.strip() for line in acp("why", "queues").stdout.splitlines()]
    first = lines.index("acp act queues rerun --agent ben")
    assert lines[first + 1 : first + 3] == [
        "or: acp act queues triage --agent ben --decision DECISION --reason TEXT",
        "you choose DECISION and TEXT: add --help to see what is possible",
    ]


def test_status_and_show_name_what_a_person_must_choose_below_the_command(acp: Acp) -> None:
    root = acp.home / "queues"
    run(root)
    agent(root, "ben", "partial")
    hint = "you choose DECISION and TEXT: add --help to see what is possible"
    for command in ("status", "show"):
        printed = " ".join(acp(command, "queues").stdout.split())
        assert f"--decision DECISION --reason TEXT {hint}" in printed


def test_a_command_that_resolves_questions_says_that_the_questions_are_to_be_written(
    acp: Acp,
) -> None:
    folder = make_v1(acp.home / "cache", "classified")
    edit(folder, "readiness.md", "- [resolved] Who", "- [blocking] Who")
    lines = [line.strip() for line in acp("why", "cache").stdout.splitlines()]
    command = lines.index("acp act cache settle_questions --questions QUESTIONS")
    assert lines[command + 1] == "you choose QUESTIONS: add --help to see what is possible"
    cause = next(
        each
        for each in json.loads(acp("why", "cache", "--json").stdout)["snapshot"]["causes"]
        if each["remedy"] == "settle_questions"
    )
    assert cause["choose"] == ["questions"]
    answer = ("--questions", "[resolved] Who starts? The server.")
    done = acp("act", "cache", "settle_questions", *answer, "--yes")
    assert done.returncode == 0, done.stderr
    assert "settle_questions" not in acp("why", "cache").stdout
