"""Each protocol beside a small model of it: the same acts, by chance, and the two must agree.

The acts are acp's own commands on real files; the models are written from the specifications'
tables, and know nothing of how acp does it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.faults.looking import acp, look
from tests.protocols.cycle import making as cycle_files
from tests.protocols.folder.small_model import Model
from tests.protocols.folder.support import make_v1
from tests.protocols.governed import making, playing
from tests.protocols.workspaces import making as run_files
from tests.protocols.workspaces.running import prepare, states

PEOPLE = ("server", "reader", "reviewer")
_DOCUMENTS = {
    "proposal_submitted": "proposal.md", "proposal_revised": "proposal.md",
    "review_submitted": "review.md", "question_classified": "readiness.md",
    "decision_proposed": "decisions.md", "decision_accepted": "decisions.md",
    "readiness_passed": "readiness.md", "completed": "conclusion.md", "blocked": "",
}  # fmt: skip


class Machine(RuleBasedStateMachine):
    """What all have in common: a folder of their own, which goes in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.root = self.place / "run"
        self.begin()

    def begin(self) -> None:
        raise NotImplementedError

    def teardown(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    def agrees(self, legal: bool, *words: str) -> None:
        """The command is done where the model allows it, and refused in a line where not."""
        ran = acp(*words)
        assert (ran.code == 0) == legal, (legal, words, ran)
        assert legal or ran.err.startswith("error: "), ran


class FolderMachine(Machine):
    """Events by all participants, legal and not, on documents that allow everything."""

    def begin(self) -> None:
        whole = make_v1(self.place / "whole", "completed")
        make_v1(self.root, "drafting")
        for name in ("proposal.md", "decisions.md", "readiness.md", "conclusion.md"):
            shutil.copy(whole / name, self.root / name)
        (self.place / "body.md").write_text("Position:\n- In favour.\n")
        self.model = Model(PEOPLE, v2=False)
        self.model.take("initialized", "server", None)
        self.submitted = 1
        self.last = ("initialized", "server", 0)

    @rule(event=st.sampled_from(sorted(_DOCUMENTS)), who=st.sampled_from((*PEOPLE, "nobody")))
    def append(self, event: str, who: str) -> None:
        document = _DOCUMENTS[event]
        # acp itself lets nothing follow the end, not even a block
        over = self.model.phase in ("completed",)
        legal = who in PEOPLE and not over and self.model.legal(event, who, None, document or None)
        reply = self.submitted if event == "review_submitted" else self.model.count
        words = ["append", "--folder", str(self.root), "--participant", who, "--event", event,
                 "--summary", "Said so.", "--reply-to", str(reply)]  # fmt: skip
        words += ["--doc", document] if document else []
        if event == "review_submitted":
            words += ["--review-file", str(self.place / "body.md")]
        # who says the very same as the last event says is told so, and nothing is appended
        again = (event, who, reply) == self.last
        self.agrees(legal or again, *words)
        if legal and not again:
            self.last = (event, who, reply)
            self.model.take(event, who, None)
            if event == "proposal_submitted":
                self.submitted = self.model.count

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """One of the acts that are legal now, so that runs get far."""
        legal = [
            (event, who)
            for event, document in sorted(_DOCUMENTS.items())
            for who in PEOPLE
            if event != "blocked" and self.model.legal(event, who, None, document)
        ]
        if legal and self.model.phase not in ("completed", "blocked"):
            self.append(*data.draw(st.sampled_from(legal)))

    @invariant()
    def reads_as_the_model_says(self) -> None:
        snapshot = look(self.root)
        assert snapshot is not None
        assert len(snapshot.events) == self.model.count
        assert snapshot.phase.replace(" ", "_") == self.model.phase, snapshot.phase
        assert sorted(turn.participant for turn in snapshot.turns) == sorted(self.model.waiting)
        assert acp("validate", str(self.root)).code == 0


class WorkspacesMachine(Machine):
    """Agents that end as they like, what is decided on them, and the integration."""

    AGENTS = ("ann", "ben", "cat")
    CHOICES: ClassVar = {
        "partial": {"accept", "rerun", "skip"},
        "failure": {"rerun", "orchestrator-does", "gap"},
        "success": {"accept", "rerun", "skip"},  # nobody need decide, and somebody may
    }

    def begin(self) -> None:
        prepare(self.root, *self.AGENTS)
        self.ended: dict[str, str] = {}
        self.decided: dict[str, str] = {}
        self.looked = self.drafted = self.finished = False

    @property
    def through(self) -> bool:
        """Whether every agent is through and decided on."""
        return all(
            self.ended.get(name) == "success"
            or (name in self.ended and self.decided.get(name) not in (None, "rerun"))
            for name in self.AGENTS
        )

    @rule(
        name=st.sampled_from(AGENTS),
        word=st.sampled_from(["success", "success", "partial", "failure"]),
    )
    def ends(self, name: str, word: str) -> None:
        if name not in self.ended:
            run_files.agent(self.root, name, word)
            self.ended[name] = word

    @rule(
        name=st.sampled_from(AGENTS),
        choice=st.sampled_from(["accept", "rerun", "skip", "orchestrator-does", "gap"]),
    )
    def decide(self, name: str, choice: str) -> None:
        if self.decided.get(name) == "rerun" or self.finished or name not in self.ended:
            return  # it is to be dispatched anew, is over, or has not begun
        legal = choice in self.CHOICES.get(self.ended[name], set())
        if choice == "rerun" or (legal and choice == "orchestrator-does"):
            return  # both need programs
        self.agrees(legal, "workspaces", "triage", str(self.root), name, choice, "--reason", "so")
        if legal:
            self.decided[name] = choice

    @rule()
    def conflicts(self) -> None:
        if not self.finished:
            self.agrees(self.through, "workspaces", "conflicts", str(self.root), "--find")
            self.looked = self.looked or self.through

    @rule()
    def draft(self) -> None:
        if not self.finished:
            legal = self.through and self.looked and not self.drafted
            self.agrees(legal, "workspaces", "integrate", str(self.root), "--draft")
            self.drafted = self.drafted or legal

    @rule()
    def finish(self) -> None:
        if not self.finished:
            legal = self.through and self.looked and self.drafted
            self.agrees(legal, "workspaces", "integrate", str(self.root), "--finish")
            self.finished = legal

    @invariant()
    def reads_as_the_model_says(self) -> None:
        assert look(self.root) is not None
        for name, state in states(self.root).items():
            word = self.ended.get(name, "not dispatched")
            decided = self.decided.get(name)
            assert state.startswith(f"{word} ({decided}" if decided else word), (name, state, word)
        done = (self.root / "integration/final-output.md").exists()
        assert done == self.finished


class GovernedMachine(Machine):
    """Turns, gates, escalations of one run; nobody but a human opens a gate."""

    PHASES = ("planning", "implementation", "verification")
    YES = ("--as", "olga", "--yes")

    def begin(self) -> None:
        playing.repository(self.root)
        making.make_run(self.root)
        (self.root / ".planning").mkdir()
        (self.root / ".planning/PM_SIGNOFF.md").write_text("# Signoff\n\nApproved: YES\n")
        (self.root / ".gitignore").write_text(".agentxchain/\n")
        playing.git(self.root, "add", "-A")
        playing.git(self.root, "commit", "-qm", "Begin")
        self.status, self.phase, self.turn = "active", 0, ""
        self.accepted = self.approved = 0

    def do(self, legal: bool, verb: str, *more: str) -> None:
        self.agrees(legal, "governed", verb, str(self.root), *more)

    def held(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / ".agentxchain/state.json").read_text())
        return found

    @rule()
    def step(self) -> None:
        if self.turn:
            return  # what it does then depends on who takes the turn
        legal = self.status == "active"
        self.do(legal, "step", "--no-run")
        self.turn = "open" if legal else ""

    @precondition(lambda self: self.turn == "open")
    @rule()
    def take(self) -> None:
        """Whoever has the turn hands in a result that nothing is wrong with."""
        [turn] = self.held()["active_turns"].values()
        last = self.phase == len(self.PHASES) - 1
        number = self.accepted + 1
        passed = {"status": "pass", "commands": ["true"],
                  "machine_evidence": [{"command": "true", "exit_code": 0}]}  # fmt: skip
        result = making.result(
            run_id=self.held()["run_id"], turn_id=turn["turn_id"], role=turn["assigned_role"],
            runtime_id=turn["runtime_id"], verification=passed,
            decisions=[{"id": f"DEC-{number:03}", "category": "scope", "statement": "One lamp.",
                        "rationale": "Hall."}],
            objections=[{"id": f"OBJ-{number:03}", "severity": "low", "statement": "Small.",
                         "status": "raised"}],
            phase_transition_request=None if last else self.PHASES[self.phase + 1],
            run_completion_request=True if last else None,
        )  # fmt: skip
        making.write(self.root / f".agentxchain/staging/{turn['turn_id']}/turn-result.json", result)
        self.turn = "staged"

    @rule()
    def accept(self) -> None:
        legal = self.turn == "staged" and self.status == "active"
        self.do(legal, "accept-turn")
        if legal:
            self.turn, self.status = "", "paused"
            self.accepted += 1

    @rule()
    def approve(self) -> None:
        last = self.phase == len(self.PHASES) - 1
        verb, wrong = "approve-transition", "approve-completion"
        if last:
            verb, wrong = wrong, verb
        self.do(False, wrong, *self.YES)
        legal = self.status == "paused"
        self.do(legal, verb, *self.YES)
        if legal:
            self.approved += 1
            self.status = "completed" if last else "active"
            self.phase += not last

    @rule()
    def reject(self) -> None:
        legal = self.status == "paused"
        self.do(legal, "reject", "--comment", "Not yet.", *self.YES)
        self.status = "active" if legal else self.status

    @rule()
    def escalate(self) -> None:
        legal = self.status == "active"
        self.do(legal, "escalate", "--reason", "Legal", *self.YES)
        self.status = "blocked" if legal else self.status

    @rule()
    def unblock(self) -> None:
        legal = self.status == "blocked"
        self.do(legal, "unblock", "--comment", "Settled.", *self.YES)
        self.status = "active" if legal else self.status

    @invariant()
    def reads_as_the_model_says(self) -> None:
        held, snapshot = self.held(), look(self.root)
        assert snapshot is not None
        found, wanted = (held["status"], held["phase"]), (self.status, self.PHASES[self.phase])
        assert found == wanted, (found, wanted, snapshot.headline)
        assert len(held["active_turns"]) == bool(self.turn)
        assert self._lines("history.jsonl") == self.accepted
        ledger = self.root / ".agentxchain/decision-ledger.jsonl"
        text = ledger.read_text() if ledger.exists() else ""
        assert text.count('"gate_approved"') == self.approved

    def _lines(self, name: str) -> int:
        path = self.root / ".agentxchain" / name
        return len(path.read_text().splitlines()) if path.exists() else 0


class CycleMachine(Machine):
    """What a person does to a cycle: decisions, blockers, pauses, limits, feedback."""

    def begin(self) -> None:
        decisions = [
            cycle_files.decision(),
            cycle_files.decision(id="DEC-002", options=["A", "B", "C"]),
        ]
        blockers = [cycle_files.blocker(id="BLK-007")]
        agents = cycle_files.agents(cd=cycle_files.agent("completed", at=15))
        coordination = cycle_files.coordination(pending_decisions=decisions, blockers=blockers)
        cycle_files.cycle(self.root, coordination=coordination, agents=agents)
        self.status, self.limit, self.iteration, self.told = "running", 5, 1, 0
        self.pending = {"DEC-001": 2, "DEC-002": 3}
        self.open = {"BLK-007"}

    def do(self, legal: bool, *words: str) -> None:
        self.agrees(legal, "cycle", *words, "--folder", str(self.root))

    @rule(id=st.sampled_from(["DEC-001", "DEC-002", "DEC-009"]), choice=st.integers(0, 4))
    def decide(self, id: str, choice: int) -> None:
        legal = 1 <= choice <= self.pending.get(id, 0)
        alone = len(self.pending) == len(self.open) == 1  # then the blocker is what it was about
        self.do(legal, "decide", id, str(choice))
        if legal:
            del self.pending[id]
            if alone:
                self.open.clear()
            self._goes_on()

    @rule(id=st.sampled_from(["BLK-007", "BLK-009"]))
    def resolve(self, id: str) -> None:
        legal = id in self.open
        self.do(legal, "resolve", id, "It is 5")
        if legal:
            self.open.discard(id)
            self.told += self.status in ("running", "paused")
            self._goes_on()

    def _goes_on(self) -> None:
        if self.status == "paused" and not self.pending:
            self.status = "running"

    @rule()
    def pause(self) -> None:
        legal = self.status == "running"
        self.do(legal, "pause")
        self.status = "paused" if legal else self.status

    @rule()
    def resume(self) -> None:
        legal = self.status in ("paused", "failed") and not self.pending
        self.do(legal, "resume")
        self.status = "running" if legal else self.status

    @rule()
    def stop(self) -> None:
        legal = self.status in ("running", "paused")
        self.do(legal, "stop")
        self.status = "failed" if legal else self.status

    @rule(limit=st.integers(0, 12))
    def allow(self, limit: int) -> None:
        legal = limit >= max(1, self.iteration)
        self.do(legal, "limit", str(limit))
        self.limit = limit if legal else self.limit

    @rule(agent=st.sampled_from(["ra", "vas"]))
    def feedback(self, agent: str) -> None:
        legal = self.status in ("running", "paused")
        self.do(legal, "feedback", agent, "Mind the commas")
        self.told += legal

    @rule()
    def extend(self) -> None:
        legal = not self.pending
        self.do(legal, "extend", "Also as JSON")
        if legal:
            self.iteration += 1
            self.limit = max(self.limit, self.iteration)  # who asks for more raises the limit
            self.told += 4
            self.status = "running"

    @invariant()
    def reads_as_the_model_says(self) -> None:
        snapshot = look(self.root)
        held = json.loads((self.root / cycle_files.STATE).read_text())
        assert snapshot is not None
        assert (held["status"], held["max_iterations"]) == (self.status, self.limit)
        assert held["current_iteration"] == self.iteration
        waiting = [
            d["id"] for d in held["coordination"]["pending_decisions"] if d["status"] == "pending"
        ]
        assert set(waiting) == set(self.pending)
        assert {
            b["id"] for b in held["coordination"]["blockers"] if b["status"] == "open"
        } == self.open
        assert len(held["coordination"]["feedback_log"]) == self.told
