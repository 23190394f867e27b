"""An agent asks for a permission: it is a need, with a card that says all, and is answered once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_core.agents.live import answers
from acp_core.agents.live.requests import parse
from acp_core.diagnosis import actions, cards
from acp_core.diagnosis.observer import Observer
from acp_core.model import Action, OutcomeState, Snapshot
from acp_core.model.card import Card
from acp_core.model.clock import utc_now
from acp_core.person import journal
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import identify
from acp_core.protocols.registry import bundled
from tests.agents.live import messages
from tests.agents.live.asking import asking
from tests.agents.support import ROOT
from tests.loops.support import make

HOSTILE = "echo '[red]x[/red]\x1b[31m\u202e'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "checkout")


def opened(folder: Path) -> Collaboration:
    found = identify(folder, bundled())
    assert found is not None
    return found.open()


def read(collaboration: Collaboration) -> Snapshot:
    observer, now = Observer(), utc_now()
    observer.refresh()
    snapshot = collaboration.refresh(now)
    return observer.diagnosed(observer.diagnosis(), collaboration, snapshot, now)


def the_card(collaboration: Collaboration, snapshot: Snapshot) -> Card:
    return cards.cards(collaboration, snapshot, utc_now())[0]


def answering(collaboration: Collaboration, snapshot: Snapshot) -> Action:
    found = actions.action(collaboration, snapshot, "answer_permission")
    assert found is not None
    return found


def text_of(card: Card) -> str:
    rows = [cell for each in card.sections for row in each.rows for cell in row.cells]
    return "\n".join([card.title, card.claim, *rows, *(each.diff for each in card.changes)])


def test_a_request_is_a_need_whose_cure_answers_it(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "touch made.txt") as program:
        snapshot = read(collaboration)
        (need,) = snapshot.needs
        assert need.sentence == "reviewer's agent asks to run: touch made.txt"
        assert need.about.participant == "reviewer" and need.remedy == "answer_permission"
        assert dict(need.given) == {"request": program.opened.id}
        action = answering(collaboration, snapshot)
        outcome = action.perform(action.inputs(request=program.opened.id, verdict="allow"))
        assert outcome.state is OutcomeState.DONE, outcome.sentence
        assert outcome.sentence == "Allowed once. Fixed."
        assert program.end().startswith("allow by ")
    assert (folder / "made.txt").exists()
    assert read(collaboration).needs == ()
    (act,) = journal.read(str(folder))
    assert (act.action, act.inputs["verdict"], act.state) == ("answer_permission", "allow", "done")


def test_who_asks_is_at_work_and_needs_one_thing_only(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "ls", participant="server"):
        later = utc_now().timestamp() + 60
        os.utime(folder / "proposal.md", (later, later))  # written, and not announced yet
        assert [each.code for each in read(collaboration).causes] == ["B17"]


def test_the_observer_says_where_requests_come_and_go(folder: Path) -> None:
    observer = Observer()
    observer.refresh()
    with asking(folder, "ls"):
        assert observer.refresh() == {str(folder)}
        assert observer.alive
    assert observer.stopped()
    assert observer.refresh() == {str(folder)}


def test_the_card_says_all_that_the_choice_depends_on(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "touch a\nrm -rf b", program="codex") as program:
        card = the_card(collaboration, read(collaboration))
        shown = text_of(card)
        for fact in (
            "touch a",
            "rm -rf b",
            "/project",
            "write the review",
            "it is no command of acp",
            "codex ends its turn; acp starts the turn again, with your message if you write one",
            "acp rejects the request at ",
        ):
            assert fact in shown, fact
        assert card.by == "reviewer" and card.since == program.opened.asked
        assert [each.label for each in card.verdicts] == [
            "Allow once",
            "Reject",
            "Reject, with a message",
        ]


def test_a_change_is_shown_as_a_difference_with_its_path(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "edit /project/a.txt", "unattended"):
        card = the_card(collaboration, read(collaboration))
        assert card.title == "reviewer's agent asks to change /project/a.txt"
        assert "-two" in card.changes[0].diff and "+three" in card.changes[0].diff
        assert "claude continues without it" in text_of(card)
        assert "acp rejects" not in text_of(card)


def test_hostile_requests_are_text(folder: Path) -> None:
    collaboration = opened(folder)
    for command in (HOSTILE, f"edit /project/{HOSTILE.replace('/', '')}"):
        with asking(folder, command):
            snapshot = read(collaboration)
            card = the_card(collaboration, snapshot)
            cause = snapshot.causes[0]
            for shown in (text_of(card), cause.sentence, *cause.evidence):
                assert "\x1b" not in shown and "\u202e" not in shown
            assert "[red]x[" in card.title


def test_a_long_command_is_never_cut_without_a_word(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "\n".join(f"echo {n}" for n in range(60))):
        shown = text_of(the_card(collaboration, read(collaboration)))
        assert "… 20 more lines: do not allow what you cannot read" in shown


def test_a_question_is_answered_with_its_options_and_never_allowed(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "question", program="qwen") as program:
        snapshot = read(collaboration)
        card = the_card(collaboration, snapshot)
        assert card.title == "reviewer's agent asks you: Which one?"
        assert [each.label for each in card.verdicts] == [
            "Answer: A",
            "Answer: B",
            "Answer in your own words",
            "Do not answer",
        ]
        action = answering(collaboration, snapshot)
        allowed = action.perform(action.inputs(request=program.opened.id, verdict="allow"))
        assert allowed.state is OutcomeState.REFUSED
        given = dict(card.verdicts[1].given)
        assert action.perform(action.inputs(**given)).state is OutcomeState.DONE
        assert program.end().endswith(": B")


def test_a_verdict_on_another_request_than_the_one_shown_is_refused(folder: Path) -> None:
    collaboration = opened(folder)
    with asking(folder, "ls"):
        snapshot = read(collaboration)
        shown = the_card(collaboration, snapshot)
        action = answering(collaboration, snapshot)
    with asking(folder, "rm -rf b"):
        with pytest.raises(cards.Refused):
            cards.check(collaboration, snapshot, shown.digest, action.name, utc_now())
        outcome = action.perform(action.inputs(**dict(shown.verdicts[0].given)))
        assert outcome.state is OutcomeState.REFUSED


def test_where_it_cannot_be_allowed_once_it_can_only_be_rejected(folder: Path) -> None:
    asked = messages.shell("claude", "ls")
    asked["params"]["options"] = [each for each in messages.ONCE if each["kind"] != "allow_once"]
    waiting = answers.publish(str(folder), "reviewer", parse(asked), attended=True)
    labels = [each.label for each in cards.permission_card(waiting).verdicts]
    assert labels == ["Reject", "Reject, with a message"]
    action = answering(opened(folder), read(opened(folder)))
    outcome = action.perform(action.inputs(request=waiting.id, verdict="allow"))
    assert outcome.state is OutcomeState.REFUSED
    answers.close(waiting, None)


def test_inside_a_session_nothing_is_decided(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collaboration = opened(folder)
    with asking(folder, "touch made.txt") as program:
        snapshot = read(collaboration)
        action = answering(collaboration, snapshot)
        monkeypatch.setenv(answers.MARK, "reviewer")
        outcome = action.perform(action.inputs(request=program.opened.id, verdict="allow"))
        assert outcome.state is OutcomeState.REFUSED
        assert "session cannot decide" in outcome.sentence
        assert len(answers.waiting()) == 1


def acp(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "acp_core", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_commands_list_and_answer_it(folder: Path) -> None:
    with asking(folder, "touch made.txt") as program:
        listed = json.loads(acp("card", str(folder), "--json").stdout)["cards"]
        assert listed[0]["title"] == "reviewer's agent asks to run: touch made.txt"
        ran = acp("answer", str(folder), program.opened.id, "reject", "--message", "no", "--json")
        assert (ran.returncode, json.loads(ran.stdout)["sentence"]) == (0, "Rejected.")
        assert program.end().endswith(": no")
        again = acp("answer", str(folder), program.opened.id, "allow")
        assert (again.returncode, again.stderr) == (2, "error: this request is no longer open\n")
    assert not (folder / "made.txt").exists()
