"""How a folder collaboration gets stuck: what stands in its own files."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents.processes import Identity
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.model import Matter
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.cli.support import Acp
from tests.diagnosis.support import problems
from tests.protocols.folder.acting import acp, open_folder
from tests.protocols.folder.support import (
    age,
    change_protocol,
    edit,
    extend,
    make_v1,
    make_v2,
    read_protocol,
    say,
    write_protocol,
)


def last_event(folder: Path) -> datetime:
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    return datetime.fromisoformat(json.loads(lines[-1])["at"])


def causes(folder: Path, *loops: RunnerState, minutes: float = 2) -> list[Matter]:
    """What is found so many minutes after the last event."""
    opened = open_folder(folder)
    now = last_event(folder) + timedelta(minutes=minutes)
    opened.refresh(now)
    seen = opened.refresh(now + timedelta(seconds=5))  # damage is an alarm when it lasts
    case = DiagnosisContext(seen, Clock(now + timedelta(seconds=5)), tuple(loops))
    return list(problems(opened, case))


def cause(folder: Path, code: str, *loops: RunnerState, minutes: float = 2) -> Matter:
    """The cause of this code; there must be one."""
    found = causes(folder, *loops, minutes=minutes)
    (one,) = [each for each in found if each.code == code]
    return one


def codes(folder: Path, *loops: RunnerState, minutes: float = 2) -> list[str]:
    return [each.code for each in causes(folder, *loops, minutes=minutes)]


def gave_up(
    folder: Path, participant: str = "server", refusal: str = "", **more: Any
) -> RunnerState:
    """A participant's loop that gave up after the last event."""
    at = last_event(folder) + timedelta(minutes=1)
    run = Run(
        number=1,
        process=Identity(4242, 1.0),
        started=last_event(folder),
        ended=at,
        exit_code=0,
        exit="exit code 0",
        refusals=(refusal,) if refusal else (),
    )
    fields: dict[str, Any] = {
        "folder": str(folder),
        "participant": participant,
        "process": Identity(4200, 1.0),
        "started": at,
        "phase": Phase.GAVE_UP,
        "since": at,
        "attempt": 1,
        "run": run,
    }
    saved = Saved(**(fields | more))
    return RunnerState(str(folder), participant, saved, True, False, "log", "place")


@pytest.mark.parametrize("upto", ["drafting", "reviewing", "classified", "passed", "completed"])
def test_a_sound_folder_has_no_cause(tmp_path: Path, upto: str) -> None:
    assert causes(make_v1(tmp_path / "c", upto)) == []
    assert causes(make_v2(tmp_path / "d", upto)) == []


class TestTheLogOrTheStateIsBroken:
    def test_a_repair_is_no_remedy_where_nobody_takes_part(self, fresh: Path) -> None:
        (fresh / "events.jsonl").write_bytes(b"")
        change_protocol(fresh, participants=[], proposalOwner=None)
        say(fresh, "server", "proposal_submitted", at=datetime.now(UTC))
        before = (fresh / "protocol.json").read_bytes()
        found = cause(fresh, "A5")
        assert found.remedy == "" and "add participants" in found.instruction
        ran = acp("repair", str(fresh), "--yes")
        assert "cannot be repaired: protocol.json names no participants" in ran.out
        assert (fresh / "protocol.json").read_bytes() == before

    def test_what_mends_a_folder_without_participants_is_said_once(self, tmp_path: Path) -> None:
        for name, more in (("reviewed", {}), ("blocked", {"blocked": "Who decides?"})):
            folder = make_v1(tmp_path / name, **more)
            change_protocol(folder, participants=[])
            said = " ".join(Acp(tmp_path)("why", str(folder)).stdout.split())
            _, said = said.split(" 1. ", 1)
            assert "protocol.json names no participants (A0" in said, said
            said = said.lower()  # with capitals where a sentence stands by itself
            assert said.count("add the participants to protocol.json") == 1
            assert said.count("names no participants") == 1
            assert said.count("history is never rewritten") == 1

    def test_nor_is_a_new_folder(self, tmp_path: Path, fresh: Path) -> None:
        say(fresh, "server", "blocked", at=datetime.now(UTC))
        assert cause(fresh, "E1").remedy == "continue"
        change_protocol(fresh, participants=[])
        found = cause(fresh, "E1")
        assert found.remedy == "" and "add participants" in found.instruction
        command = Acp(tmp_path)
        assert "continue" not in command("act", str(fresh)).stdout
        refused = command("act", str(fresh), "continue", "--answer", "Yes", "--yes")
        assert refused.returncode == 2
        assert "protocol.json names no participants" in refused.stdout + refused.stderr

    def test_a_clock_that_is_ahead(self, folder: Path) -> None:
        found = cause(folder, "A6", minutes=-30)
        assert (found.certain, found.wanted) == (False, False)

    def test_a_turn_that_a_wrong_clock_began_grows_old(self, folder: Path) -> None:
        log = folder / "events.jsonl"
        *lines, last = log.read_text().splitlines()
        lines.append(json.dumps(json.loads(last) | {"at": "9999-12-31T23:59:59Z"}))
        log.write_text("\n".join(lines) + "\n")
        age(folder, "events.jsonl", at=datetime.now(UTC) - timedelta(hours=2))
        collaboration = open_folder(folder)
        (turn, *_) = collaboration.refresh(datetime.now(UTC)).turns
        assert turn.since is not None and turn.since < datetime.now(UTC) - timedelta(hours=1)

    def test_one_way_leads_out_of_a_log_however_much_is_wrong_with_it(self, tmp_path: Path) -> None:
        folder = make_v1(tmp_path / "c", "revising")
        say(folder, "reader", "completed", at="2026-01-01T00:00:00Z", doc="conclusion.md")
        say(folder, "ghost", "blocked", at=last_event(folder))
        beyond = [
            each for each in causes(folder) if "history is never rewritten" in each.instruction
        ]
        (only,) = beyond
        assert only.code == "A6"
        assert {line.split()[0] for line in only.evidence} >= {"ACP217", "ACP401"}

    def test_one_that_was_acknowledged_hides_no_other_of_its_kind(self, folder: Path) -> None:
        seen = []
        for name in ("decisions.md", "readiness.md"):
            text = (folder / name).read_bytes()
            (folder / name).unlink()
            first, again = cause(folder, "A8"), cause(folder, "A8", minutes=9)
            assert first.key == again.key and name in str(first.evidence)
            seen.append(first.key)
            (folder / name).write_bytes(text)
        assert seen[0] != seen[1]

    def test_two_versions_of_one_file(self, folder: Path) -> None:
        (folder / "protocol (conflicted copy 2026-01-02).json").write_text("{}")
        (folder / "notes (conflicted copy).txt").write_text("")
        found = cause(folder, "A9")
        assert len(found.evidence) == 1
        assert not found.certain

    def test_each_need_is_explained_once(self, folder: Path) -> None:
        from acp_core.diagnosis.engine import with_standing

        (folder / "decisions.md").unlink()
        change_protocol(folder, objective=" ")
        found = tuple(causes(folder))
        opened = open_folder(folder)
        now = last_event(folder) + timedelta(minutes=3)
        opened.refresh(now)
        seen = opened.refresh(now + timedelta(seconds=5))
        assert [need.code for need in seen.needs] == ["invalid"]
        assert [need.code for need in with_standing(seen, found, None).needs] == ["A0", "A8"]

    def test_damage_that_is_being_written_just_now_is_no_alarm(self, folder: Path) -> None:
        protocol = read_protocol(folder)
        write_protocol(folder, protocol | {"currentPhase": "drafting", "waitingFor": ["server"]})
        opened = open_folder(folder)
        now = datetime.now().astimezone()
        found = problems(opened, DiagnosisContext(opened.refresh(now), Clock(now)))
        assert "A4" not in [each.code for each in found]


class TestAHalfDoneTurn:
    def touch(self, folder: Path, name: str, minutes: float) -> None:
        at = last_event(folder) + timedelta(minutes=minutes)
        os.utime(folder / name, (at.timestamp(), at.timestamp()))

    def test_written_and_not_appended(self, tmp_path: Path) -> None:
        folder = make_v1(tmp_path / "c", "revising")
        self.touch(folder, "proposal.md", 0.5)
        assert codes(folder) == []
        found = cause(folder, "C1", gave_up(folder))
        assert (found.remedy, found.certain) == ("proposal_revised", False)
        assert dict(found.given) == {"participant": "server"}
        assert found.about.document == "proposal.md"

    def test_written_by_one_whose_process_is_not_known(self, tmp_path: Path) -> None:
        folder = make_v1(tmp_path / "c", "revising")
        self.touch(folder, "proposal.md", 1)
        assert codes(folder, minutes=10) == []
        assert codes(folder, minutes=12) == ["C1"]
        assert codes(folder, minutes=36) == ["C1", "B14"]


REFUSED_GATES = "error: completion gates must be checked first: The rollout order is agreed"


class TestAGateThatIsNotMet:
    def unready(self, tmp_path: Path, upto: str = "readiness_check") -> Path:
        return make_v1(tmp_path / "c", upto)

    def test_the_reason_stands_on_top_of_what_follows(self, tmp_path: Path) -> None:
        folder = self.unready(tmp_path, "passed")
        edit(folder, "readiness.md", "- [x] The rollout order", "- [ ] The rollout order")
        edit(folder, "conclusion.md", (folder / "conclusion.md").read_text(), CONCLUSION)
        found = causes(folder, gave_up(folder, refusal=REFUSED_GATES))
        assert [each.code for each in found] == ["D5", "B3"]
        assert found[0].remedy == "check_gates"
        assert "is not checked" in found[0].sentence

    def test_a_gate_in_other_words(self, tmp_path: Path) -> None:
        folder = self.unready(tmp_path, "passed")
        edit(
            folder,
            "readiness.md",
            "- [x] The rollout order is agreed",
            "- [x] The rollout order was agreed on",
        )
        found = cause(folder, "D5", gave_up(folder, refusal=REFUSED_GATES))
        assert "worded differently" in found.sentence
        assert found.evidence[0] == "expected: - [x] The rollout order is agreed"
        assert "The rollout order was agreed on" in found.evidence[1]
        assert found.evidence[2] == "differs in: [-was-] {+is+} [-on-]"

    def test_a_gate_that_stands_nowhere(self, tmp_path: Path) -> None:
        folder = self.unready(tmp_path, "passed")
        edit(folder, "readiness.md", "- [x] The rollout order is agreed\n", "")
        found = cause(folder, "D5", gave_up(folder))
        assert "is missing from readiness.md" in found.sentence

    def test_two_gates_are_two_matters(self, tmp_path: Path) -> None:
        """Who acknowledged one still hears of the other, and one that is met is gone."""
        folder = self.unready(tmp_path, "passed")
        (folder / "readiness.md").write_text("# Readiness\n")
        age(folder)
        found = causes(folder, gave_up(folder, refusal=REFUSED_GATES))
        keys = [each.key for each in found if each.code == "D5"]
        assert len(keys) == len(set(keys)) == 2

    def test_the_conclusion_is_refused(self, tmp_path: Path) -> None:
        folder = self.unready(tmp_path, "passed")
        text = CONCLUSION.replace("As agreed.", "There are no unresolved questions.", 1)
        edit(folder, "conclusion.md", (folder / "conclusion.md").read_text(), text)
        refusal = "error: conclusion.md must not contain unresolved placeholders before completed"
        found = cause(folder, "D6", gave_up(folder, refusal=refusal))
        assert found.remedy == "nudge"
        assert any("placeholder unresolved" in line for line in found.evidence)

    @pytest.mark.parametrize("failure", ["login", "limit", "service", "model", "credit"])
    def test_an_agent_that_cannot_work_is_one_need_whatever_else_is_open(
        self, tmp_path: Path, failure: str
    ) -> None:
        folder = make_v1(tmp_path / "c", "decision_review")
        found = causes(folder, gave_up(folder, failure=failure))
        assert [each.code for each in found if each.wanted] == ["B3"]
        assert [each.code for each in found if not each.wanted] == ["D7"]

    def test_while_the_loop_tries_again_nobody_is_wanted(self, tmp_path: Path) -> None:
        folder = self.unready(tmp_path)
        pausing = gave_up(
            folder, phase=Phase.PAUSING, retry_at=last_event(folder) + timedelta(minutes=9)
        )
        assert not any(each.wanted for each in causes(folder, pausing))

    def test_one_of_several_is_late(self, folder: Path) -> None:
        assert "D1" not in codes(folder, gave_up(folder, "reviewer"))
        path = folder / "review.md"
        path.write_text(path.read_text() + "\n## 2026-01-02T03:30:00Z - reader - seq 3\n\nFine.\n")
        say(folder, "reader", "review_submitted", at=last_event(folder), doc="review.md")
        age(folder)
        found = cause(folder, "D1", gave_up(folder, "reviewer"))
        assert found.sentence == "1 of 2 have answered; still waiting for reviewer"
        assert found.instruction == "help only reviewer: the others are idle"
        assert not found.wanted

    def test_rounds_that_do_not_converge(self, tmp_path: Path) -> None:
        folder = make_v1(tmp_path / "c", "revising", rounds=3)
        found = cause(folder, "D9")
        assert found.evidence == ("required changes per round: 2, 2, 2",)
        assert not found.certain
        text = (folder / "review.md").read_text()
        head, found_last, tail = text.rpartition("- Name who starts.")
        (folder / "review.md").write_text(f"{head}- None.{tail}")
        age(folder)
        assert found_last
        assert "D9" not in codes(folder)


CONCLUSION = "# Conclusion\n\n## Decision Outcome\n\n- [proceed] Build it.\n" + "".join(
    f"\n## {name}\n\nAs agreed.\n"
    for name in (
        "Rationale",
        "Accepted Decisions",
        "Implementation Approach",
        "Assumptions",
        "Deferred Follow-ups",
        "Implementation Blockers",
        "Next Action",
    )
)


def test_how_long_turns_took(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "c", "revising", rounds=2)
    opened = open_folder(folder)
    opened.refresh(last_event(folder))
    assert opened.durations("reader") == (600.0, 600.0)  # every step takes ten minutes
    assert opened.durations("reviewer") == (1200.0, 1200.0)
    assert opened.durations("nobody") == ()


HOSTILE = "a\x1b[31mb\x07c\u202ed[bold]e"


def test_no_cause_carries_what_a_terminal_would_obey(tmp_path: Path) -> None:
    """Whatever the files, and whatever a program printed: registry and Snapshot made it safe."""

    from acp_core.model.text import clean

    gates = (f"Gate {HOSTILE}", "The rollout order is agreed")
    people = ("server", "re\x1bader")
    ready = make_v1(tmp_path / "a", "passed", participants=people, gates=gates)
    edit(ready, "readiness.md", f"- [x] Gate {HOSTILE}\n", f"- [x] Gates {HOSTILE}\n")
    edit(ready, "readiness.md", "- [resolved] Who", f"- [blocking] {HOSTILE} Who")
    blocked = make_v1(tmp_path / "b", "reviewing", blocked=HOSTILE)
    odd = make_v1(tmp_path / "c", "reviewing")
    say(odd, HOSTILE, HOSTILE, at=last_event(odd), doc=HOSTILE)
    (odd / f"protocol.sync-conflict-{HOSTILE}.json").write_text("")
    late = make_v1(tmp_path / "d", "reviewing", participants=people)
    found = causes(ready, gave_up(ready, refusal="error: completion gates must be checked first"))
    found += causes(blocked) + causes(odd) + causes(late, minutes=60)
    assert {"D4", "D5", "E1", "A7", "A9", "B1"} <= {each.code for each in found}
    for each in found:
        flat = [t for text in each for t in (text if isinstance(text, tuple) else (text,))]
        flat = [t for text in flat for t in (text if isinstance(text, tuple) else (text,))]
        for text in flat:
            if isinstance(text, str):
                assert clean(text) == text
                assert "\n" not in text or each.remedy == "nudge"


@pytest.mark.parametrize(
    ("line", "code"),
    [("- [blocking] No access", "D4"), ("- [unresolved] Who pays?", "D2"),
     ("- [deferred_nonblocking] Metrics", "D3")],
)  # fmt: skip
def test_acceptances_that_are_certain_to_be_refused_are_a_cause_at_once(
    tmp_path: Path, line: str, code: str
) -> None:
    folder = make_v1(tmp_path / "run", "classified")
    extend(folder, f"{line}\n", "readiness.md")
    age(folder)
    found = cause(folder, code, minutes=0.1)
    assert (
        found.wanted and found.about.participant == "server" and found.remedy == "settle_questions"
    )
    assert found.sentence.endswith("every acceptance is refused")
    assert found.about.document == "readiness.md" and found.root
