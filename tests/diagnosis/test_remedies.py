"""What a person does about a stuck participant: described, done, looked at again, and noted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents.state import Phase
from acp_core.diagnosis import actions as acts
from acp_core.fleet import Fleet
from acp_core.model import Action, Outcome, OutcomeState, Preview, Snapshot
from acp_core.person import journal as human_journal
from acp_core.protocols.folder.collaboration import FolderCollaboration
from tests.agents.support import ROOT, is_gone, wait_for
from tests.cli.support import Acp
from tests.loops import support
from tests.protocols.folder.support import make_v1


class Person:
    """Somebody at work on one collaboration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(self) -> Snapshot:
        """What stands there now."""
        fleet = Fleet([self.folder], discover=False)
        try:
            return fleet.read()[0]
        finally:
            asyncio.run(fleet.close())

    def codes(self) -> list[str]:
        return [each.code for each in self.look().causes]

    def actions(self) -> dict[str, Action]:
        opened = FolderCollaboration(str(self.folder))
        return {each.name: each for each in acts.actions(opened, self.look())}

    def preview(self, name: str, **inputs: Any) -> Preview:
        action = self.actions()[name]
        return action.preview(action.inputs(**inputs))

    def do(self, name: str, **inputs: Any) -> Outcome:
        action = self.actions()[name]
        return action.perform(action.inputs(**inputs))

    def remedy(self) -> Outcome:
        """Do what the first cause proposes, as one key does."""
        cause = self.look().causes[0]
        assert cause.remedy
        return self.do(cause.remedy, **dict(cause.given))

    @property
    def journal(self) -> list[tuple[str, str]]:
        return [(each.action, each.state) for each in human_journal.read(str(self.folder))]


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(support.make(tmp_path / "cache"))


def stuck(person: Person, tmp_path: Path, *words: str, who: str = "server", **more: Any) -> None:
    """Start a loop whose program misbehaves, and which gives up at once."""
    behaviour = support.behave(tmp_path, " ".join(words))
    support.start(person.folder, who, support.command(tmp_path, behaviour), retries=0, **more)
    support.wait_for_phase(person.folder, who, Phase.GAVE_UP)


def took_its_turn(person: Person) -> None:
    wait_for(
        lambda: support.events(person.folder)[-1]["event"] == "proposal_submitted", "the event"
    )


class TestATurnThatWasMissed:
    def test_a_nudge_begins_it_anew(self, person: Person, tmp_path: Path) -> None:
        stuck(person, tmp_path, "idle")
        outcome = person.remedy()
        assert outcome.state is OutcomeState.DONE
        assert outcome.sentence == "server: the loop received the message."
        took_its_turn(person)
        assert "without recording an event" in support.prompt(person.folder, "server", 2)
        assert person.journal == [("nudge", "done")]

    def test_a_nudge_that_must_wait_says_so(self, person: Person, tmp_path: Path) -> None:
        behaviour = support.behave(tmp_path, "hang")
        support.start(person.folder, "server", support.command(tmp_path, behaviour))
        wait_for(lambda: support.state(person.folder, "server").program_alive, "its program")
        assert "after the current attempt" in person.preview("nudge", message="Hurry").sentence
        outcome = person.do("nudge", message="Hurry")
        assert outcome.state is OutcomeState.REQUESTED

    def test_starting_it_again(self, person: Person, tmp_path: Path) -> None:
        stuck(person, tmp_path, "crash")
        before = support.state(person.folder, "server").pid
        seen = person.preview("relaunch")
        assert str(tmp_path / "agent") in seen.changes[0].diff
        assert seen.command == ("acp", "launch", str(person.folder), "server", "--again")
        assert "are stopped first" in seen.warnings[0]
        outcome = person.do("relaunch")
        assert outcome.sentence.endswith("Fixed.")
        assert support.state(person.folder, "server").pid != before
        took_its_turn(person)

    @pytest.mark.slow
    def test_another_program_under_the_same_id(self, person: Person, tmp_path: Path) -> None:
        stuck(person, tmp_path, "idle")
        support.start(person.folder, "reader", support.command(tmp_path, name="able"))
        fields = person.actions()["hand_over"].inputs.model_fields
        assert fields["program"].default == "like reader"
        seen = person.preview("hand_over", participant="server")
        assert str(tmp_path / "able") in seen.changes[0].diff
        assert seen.command[:4] == ("acp", "act", str(person.folder), "hand_over")
        outcome = person.do("hand_over", participant="server")
        assert outcome.state is OutcomeState.DONE
        took_its_turn(person)
        assert support.events(person.folder)[-1]["from"] == "server"

    def test_any_command(self, person: Person, tmp_path: Path) -> None:
        stuck(person, tmp_path, "idle")
        able = support.stand_in(tmp_path, "able")
        given = {"participant": "server", "program": "command", "command": f"'{able}'"}
        assert person.preview("hand_over", **given | {"command": "'"}).refused
        assert person.do("hand_over", **given).state is OutcomeState.DONE
        took_its_turn(person)


class TestALoopThatIsNoMore:
    def test_killed(self, person: Person, tmp_path: Path) -> None:
        state = support.start(person.folder, "server", support.command(tmp_path, "--version"))
        os.kill(state.pid, signal.SIGKILL)
        wait_for(lambda: not support.state(person.folder, "server").alive, "its end")
        assert person.codes() == ["B2"]
        assert person.remedy().sentence.endswith("Fixed.")
        assert support.state(person.folder, "server").alive

    @pytest.mark.slow
    def test_a_deadline_is_counted_anew(self, person: Person, tmp_path: Path) -> None:
        from datetime import timedelta

        from acp_core.model.clock import utc_now

        hang = support.behave(tmp_path, "hang")
        until = utc_now() + timedelta(seconds=8)  # enough for a turn, once it is counted anew
        support.start(person.folder, "server", support.command(tmp_path, hang), deadline=until)
        wait_for(lambda: not support.state(person.folder, "server").alive, "its end")
        wait_for(lambda: person.codes() == ["E8"], "the cause")
        assert person.remedy().state is OutcomeState.DONE
        took_its_turn(person)


class TestNobodyLaunched:
    @pytest.mark.slow
    def test_everybody_at_once(
        self, person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ACP_SPEED", "100")
        support.start(person.folder, "server", support.command(tmp_path))
        wait_for(lambda: "B1" in person.codes(), "somebody forgotten", 60)
        seen = person.preview("launch_all")
        assert "reader" in seen.sentence and "reviewer" in seen.sentence
        assert person.do("launch_all").state is OutcomeState.DONE
        wait_for(lambda: support.events(person.folder)[-1]["event"] == "completed", "the end", 90)

    def test_what_ran_before_the_folder_was_continued(self, person: Person, tmp_path: Path) -> None:
        support.start(person.folder, "server", support.command(tmp_path))
        took_its_turn(person)
        blocked = person.do("block", participant="reader", reason="Who pays?")
        assert blocked.state is OutcomeState.DONE
        assert person.codes() == ["E1"]
        new = tmp_path / "cache-2"
        given = {"answer": "We do.", "folder": str(new), "start": False}
        assert person.do("continue", **given).sentence.endswith("Fixed.")
        assert person.codes() == ["E2"]
        there = Person(new)
        given = {"participant": ["server=as before"]}
        assert there.do("launch", **given).state is OutcomeState.DONE
        took_its_turn(there)
        assert support.state(new, "server").shown.workdir == str(new)


class TestEnding:
    def test_a_program_that_lingers(self, person: Person, tmp_path: Path) -> None:
        linger = support.behave(tmp_path, "linger")
        support.start(person.folder, "server", support.command(tmp_path, linger))
        took_its_turn(person)
        state = support.state(person.folder, "server")
        wait_for(lambda: support.state(person.folder, "server").program_alive, "its program")
        run = support.state(person.folder, "server").run
        assert run
        outcome = person.do("stop_program", participant="server")
        assert outcome.sentence.startswith(f"Ended process {run.process.pid}")
        assert is_gone(run.process.pid)
        assert support.state(person.folder, "server").pid == state.pid
        support.wait_for_phase(person.folder, "server", Phase.WAITING)

    def test_a_loop(self, person: Person, tmp_path: Path) -> None:
        state = support.start(person.folder, "reader", support.command(tmp_path))
        assert person.do("stop", participant="reader").state is OutcomeState.DONE
        assert is_gone(state.pid)
        assert "stop" not in person.actions()

    @pytest.fixture
    def second(self, person: Person, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
        """A second loop of the reader's, with another state folder: nobody here knows it."""
        support.start(person.folder, "reader", support.command(tmp_path))
        words = ("loop", "--folder", str(person.folder), "--participant", "reader", "--", "true")
        other = subprocess.Popen(
            [sys.executable, "-m", "acp_core", *words],
            cwd=ROOT,
            env={**os.environ, "ACP_STATE": str(tmp_path / "other")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        yield other
        other.kill()
        other.wait()

    def test_a_second_loop(self, person: Person, second: subprocess.Popen[bytes]) -> None:
        wait_for(lambda: person.codes() == ["B13"], "two of them")
        cause = person.look().causes[0]
        assert str(second.pid) in " ".join(cause.evidence)
        assert str(second.pid) in person.preview("stop_duplicate").sentence
        assert person.remedy().sentence == f"Ended process {second.pid}. Fixed."
        second.wait()
        assert support.state(person.folder, "reader").alive


def test_how_to_log_in_is_shown_and_not_done(person: Person, tmp_path: Path) -> None:
    from acp_core.agents import presets

    claude = support.as_command(presets.bundled()["claude"], support.stand_in(tmp_path, "claude"))
    support.start(person.folder, "server", claude)
    assert person.preview("login").command == ("claude", "auth", "login")
    outcome = person.do("login")
    assert outcome.state is OutcomeState.REQUESTED
    assert "your own terminal" in outcome.sentence


class TestWhatIsMendedInDocuments:
    def folder(self, tmp_path: Path) -> Person:
        folder = make_v1(tmp_path / "c", "passed")
        path = folder / "readiness.md"
        text = path.read_text().replace(
            "- [x] The rollout order is agreed", "- [x] The rollout order was agreed"
        )
        path.write_text(text.replace("- [x] The message", "- [ ] The message"))
        return Person(folder)

    @pytest.mark.slow
    def test_a_gate_in_other_words_gets_its_own(self, tmp_path: Path) -> None:
        person = self.folder(tmp_path)
        seen = person.preview("check_gates", gate_2=True)
        assert "-- [x] The rollout order was agreed" in seen.changes[0].diff
        assert "+- [x] The rollout order is agreed" in seen.changes[0].diff
        assert person.do("check_gates", gate_2=True).state is OutcomeState.DONE
        text = (person.folder / "readiness.md").read_text()
        assert "- [x] The rollout order is agreed\n" in text
        assert "was agreed" not in text
        assert "- [ ] The message contract is agreed\n" in text
        assert person.journal == [("check_gates", "done")]

    def test_an_open_box_is_checked_and_what_is_missing_put_in(self, tmp_path: Path) -> None:
        person = self.folder(tmp_path)
        path = person.folder / "readiness.md"
        path.write_text(path.read_text().replace("- [x] The rollout order was agreed\n", ""))
        person.do("check_gates", gate_1=True, gate_2=True)
        text = path.read_text()
        assert "- [x] The message contract is agreed\n- [x] The rollout order is agreed\n" in text
        assert "check_gates" not in person.actions()

    def test_nothing_is_checked_unless_said(self, tmp_path: Path) -> None:
        person = self.folder(tmp_path)
        assert person.preview("check_gates").refused
        assert person.do("check_gates").state is OutcomeState.REFUSED
        assert person.journal == [("check_gates", "refused")]

    def test_questions_are_settled(self, tmp_path: Path) -> None:
        person = Person(make_v1(tmp_path / "c", "classified"))
        path = person.folder / "readiness.md"
        path.write_text(path.read_text().replace("[resolved] Who starts?", "[blocking] Who pays?"))
        field = person.actions()["settle_questions"].inputs.model_fields["questions"]
        assert field.default[0] == "[blocking] Who pays?"
        answers = ["[resolved] Who pays? We do.", field.default[1]]
        assert person.do("settle_questions", questions=answers).state is OutcomeState.DONE
        assert "- [resolved] Who pays? We do." in path.read_text()
        refused = {"questions": ["Who pays?"]}
        path.write_text(path.read_text().replace("[resolved] Who pays", "[unresolved] Who pays"))
        assert person.do("settle_questions", **refused).state is OutcomeState.REFUSED


@pytest.mark.slow
def test_mending_the_cause_wakes_who_had_given_up(person: Person, tmp_path: Path) -> None:
    log = person.folder / "events.jsonl"
    with log.open("ab") as file:
        file.write(b'{"seq":2,"from":"ser')
    support.start(person.folder, "server", support.command(tmp_path), retries=0)
    support.wait_for_phase(person.folder, "server", Phase.GAVE_UP)
    wait_for(lambda: person.codes()[:1] == ["A1"], "the torn line to be an alarm")
    outcome = person.remedy()
    assert outcome.sentence.startswith("Fixed: ")
    assert "Asked server to try again." in outcome.sentence
    took_its_turn(person)
    assert person.journal == [("repair", "done")]


def test_what_an_act_leaves_as_it_was_is_not_called_fixed(tmp_path: Path) -> None:
    """A block is what helps where a log is broken before its end, and it mends nothing by itself."""
    folder = make_v1(tmp_path / "c")
    log = folder / "events.jsonl"
    first, *rest = log.read_text().splitlines(keepends=True)
    log.write_text("".join([first, '{"seq": broken\n', *rest]))
    person = Person(folder)
    wait_for(lambda: person.codes()[:1] == ["A2"], "the broken line to be an alarm")
    outcome = person.remedy()
    assert outcome.state is OutcomeState.DONE and "Fixed" not in outcome.sentence
    (stands,) = (each.sentence for each in person.look().causes if each.code == "A2")
    assert outcome.sentence.endswith(f" Still open: {stands}.")


def test_what_mends_the_first_cause_is_offered_first(person: Person, tmp_path: Path) -> None:
    stuck(person, tmp_path, "idle")
    assert next(iter(person.actions())) == "nudge"


@pytest.mark.slow
def test_every_fix_that_why_prints_names_the_participant(person: Person, tmp_path: Path) -> None:
    acp = Acp(tmp_path, {name: os.environ[name] for name in ("ACP_STATE", "ACP_CONFIG")})
    support.start(person.folder, "reader", support.command(tmp_path, name="able"))
    stuck(person, tmp_path, "idle")
    said = acp("why", "cache", env={"COLUMNS": "300"}).stdout
    fixes = [line.strip() for line in said.splitlines() if "acp act cache" in line]
    assert len(fixes) > 2
    assert all("--participant server" in line for line in fixes), fixes


@pytest.mark.slow
def test_what_is_done_by_command_is_noted_too(person: Person, tmp_path: Path) -> None:
    acp = Acp(tmp_path, {name: os.environ[name] for name in ("ACP_STATE", "ACP_CONFIG")})
    program = support.stand_in(tmp_path, "agent")
    launched = acp("launch", "cache", "reader", "--", program)
    assert launched.returncode == 0, launched.stderr
    assert acp("nudge", "cache", "reader", "Hurry.").returncode == 0
    assert acp("stop", "cache", "reader").returncode == 0
    assert person.journal == [("launch", "done"), ("nudge", "done"), ("stop", "done")]
    assert human_journal.read(str(person.folder))[1].inputs["message"] == "Hurry."
