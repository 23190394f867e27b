"""A collaboration that is stuck is finished by commands alone, as with a screen reader."""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.golden.builders.folder import Story
from tests.golden.states import all_states

PEOPLE = ("server", {"id": "anna", "kind": "human"})
DRAWN = re.compile(r"[\u2190-\u21ff\u2300-\u23ff\u2500-\u25ff\u2700-\u27bf\x1b]")
"""Arrows, lines, blocks, dingbats, and escape sequences."""
HEADINGS = (
    "Rationale", "Accepted Decisions", "Implementation Approach", "Assumptions",
    "Deferred Follow-ups", "Implementation Blockers", "Next Action",
)  # fmt: skip
CONCLUSION = "# Conclusion\n\n## Decision Outcome\n\n- [proceed] Push, then poll.\n" + "".join(
    f"\n## {heading}\n\n- None.\n" for heading in HEADINGS
)
TORN = '{"seq": 6, "from'


class Listener:
    """A person who types commands and hears what they print, line by line."""

    def __init__(self, acp: Acp) -> None:
        self._acp = acp

    def types(self, line: str) -> str:
        """What a command line prints; none of it is drawn, or coloured."""
        ended = self._acp(*shlex.split(line.removeprefix("acp ")))
        assert ended.returncode in (0, 1), ended.stderr
        assert DRAWN.findall(ended.stdout) == []
        assert " , " not in ended.stdout
        assert all(unicodedata.category(sign) != "So" for sign in ended.stdout)
        return ended.stdout

    def hears_command(self, said: str, verb: str) -> str:
        """The command that some lines name for an action."""
        return next(
            line.strip().removeprefix("command: ")
            for line in said.splitlines()
            if f"acp act cache {verb}" in line
        )


@pytest.fixture
def stuck(tmp_path: Path) -> Path:
    """A collaboration that waits for two people, whose log ends in half an event."""
    story = Story(tmp_path / "home" / "cache", PEOPLE)
    for step in (story.submit, story.reviews, story.revise, story.classify):
        step()
    log = story.folder / "events.jsonl"
    log.write_text(log.read_text("utf-8") + TORN, encoding="utf-8")
    os.utime(log, (story.at.timestamp(),) * 2)
    return story.folder


@pytest.mark.slow
def test_a_stuck_collaboration_is_finished_without_the_dashboard(stuck: Path) -> None:
    me = Listener(Acp(stuck.parent, {"ACP_SIGNS": "words"}))

    said = me.types("acp status")
    assert "needs you" in said
    said = me.types("acp why cache")
    assert "1. The last line of events.jsonl is an incomplete event" in said
    assert "done: Fixed" in me.types(f"{me.hears_command(said, 'repair')} --yes")

    said = me.types("acp card cache")
    assert "server asks anna to accept the decisions" in said
    assert "met: Who starts? The server." in said
    me.types(f"{me.hears_command(said, 'decision_accepted')} --yes")
    assert "asks anna to accept" not in me.types("acp card cache")

    server = "acp append --folder cache --participant server --event"
    me.types(f'{server} decision_accepted --summary "Agreed" --reply-to 5')
    said = me.types("acp show cache")
    assert "not met: The rollout order is agreed" in said
    assert "check_gates" in me.types("acp act cache")
    me.types("acp act cache check_gates --ready --gate-1 --gate-2 --yes")

    said = me.types("acp show cache")
    assert "Phases: done: drafting" in said
    assert "  met: The rollout order is agreed" in said
    me.types(f'{server} readiness_passed --summary "All gates are met" --reply-to 7')
    (stuck / "conclusion.md").write_text(CONCLUSION, encoding="utf-8")
    me.types(f"{server} completed --summary Done --reply-to 8 --doc conclusion.md")

    assert "completed" in me.types("acp watch cache --once")
    assert "Completed: nothing is left to do." in me.types("acp why cache")
    assert "server" in me.types("acp replay cache")
    assert me.types("acp stats cache")


def test_a_gate_is_approved_and_a_question_answered_without_the_dashboard(tmp_path: Path) -> None:
    for state in ("governed/run-gate-waits", "folder/reviewing-with-question"):
        place = tmp_path / "home" / state.partition("/")[0]
        place.mkdir(parents=True)
        built = all_states()[state].build(place)
        if built != place:
            built.rename(tmp_path / "home" / "cache")
    me = Listener(Acp(tmp_path / "home", {"ACP_SIGNS": "words"}))

    said = me.types("acp status")
    assert "needs you: the gate planning_signoff needs your approval" in said
    said = me.types("acp why governed")
    assert "waiting for you" in said and "the gate planning_signoff" in said
    said = me.types("acp card governed")
    for fact in ("pm asks to enter implementation", "met: .planning/ROADMAP.md", "OBJ-001  low"):
        assert fact in said
    approve = next(line.strip() for line in said.splitlines() if " approve_gate " in line)
    assert "Approved planning_signoff: implementation begins." in me.types(f"{approve} --yes")
    assert "implementation: active" in me.types("acp watch governed --once")
    assert "dispatch the next turn to dev" in me.types("acp why governed")

    said = me.types("acp card cache")
    assert "reader asks a question" in said and '"How long may an entry live?"' in said
    answer = me.hears_command(said, "answer_question").replace("ANSWER", '"One hour."', 1)
    me.types(f"{answer} --yes")
    assert "How long may an entry live?" not in me.types("acp card cache")
    assert "help only reviewer" in me.types("acp why cache")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
@pytest.mark.parametrize(
    "command", ["status", "why cache", "card cache", "show cache", "act cache"]
)
def test_a_pipe_gets_no_escapes_and_every_sign_has_its_word(
    stuck: Path, command: str, environment: dict[str, str]
) -> None:
    ended = Acp(stuck.parent, environment)(*command.split())
    assert "\x1b" not in ended.stdout
    words = Acp(stuck.parent, environment | {"ACP_SIGNS": " Words "})(*command.split())
    assert DRAWN.findall(words.stdout) == []


def test_data_for_programs_keeps_every_sign(stuck: Path) -> None:
    (stuck / "proposal.md").write_text("# Proposal → ✓\n", encoding="utf-8")
    spoken = Acp(stuck.parent, {"ACP_SIGNS": "words"})
    drawn = Acp(stuck.parent)
    for command in (("report", "cache", "--format", "json"), ("act", "cache", "--json")):
        assert spoken(*command).stdout.count("→") == drawn(*command).stdout.count("→")
