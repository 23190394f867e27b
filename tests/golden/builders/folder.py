"""Folder collaborations written by hand, as any tool that follows the protocol leaves them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 1, 5, 9, 0, 0, tzinfo=UTC)
STEP = timedelta(minutes=20)
OBJECTIVE = "Choose how the cache is invalidated"
GATES = ("The message contract is agreed", "The rollout order is agreed")
PEOPLE = ("server", "reader", "reviewer")
PRIMARY = "deliverables/decision.md"
SECTIONS = ("Question", "Recommendation", "Options", "Tradeoffs", "Decision", "Next Action")


class Story:
    """A collaboration that goes on step by step; each step leaves valid files.

    Args:
        folder: where; made.
        people: ids, or objects as protocol.json lists them; the first one owns the proposal.
        v2: with a decision memo as its deliverable.
        repo_root: where that memo lies relative to the folder; empty: inside it.
        objective, gates: what protocol.json says of them.
    """

    start, step = START, STEP

    def __init__(
        self,
        folder: Path,
        people: Sequence[Any] = PEOPLE,
        *,
        v2: bool = False,
        repo_root: str = "",
        objective: str = OBJECTIVE,
        gates: Sequence[str] = GATES,
    ) -> None:
        self.objective, self.gates = objective, gates
        self.folder, self.people, self.v2, self.repo_root = folder, people, v2, repo_root
        self.names = [each if isinstance(each, str) else each["id"] for each in people]
        self.owner, *self.others = self.names
        self.seq, self.at = 0, self.start - self.step
        base = folder / repo_root if repo_root else folder
        self.memo_path = base / PRIMARY
        self.memo_name = "external:decision.md" if repo_root else PRIMARY
        folder.mkdir(parents=True, exist_ok=True)
        self._begin()

    def _begin(self) -> None:
        decision = (
            "\n### D1. Initial deliverable declaration\n\n- Decision: write a memo.\n"
            f"- Rationale: it is short.\n- Reflected in: `{self.memo_name}`\n"
        )
        self.write("events.jsonl", "")
        self.write("README.md", f"# Collaboration\n\nObjective: {self.objective}\n")
        self.write("proposal.md", f"# Proposal\n\n## Purpose\n\n{self.objective}\n")
        self.write("review.md", "# Reviews\n\nOne section per review.\n")
        self.write("decisions.md", "# Accepted Decisions\n" + (decision if self.v2 else ""))
        self.write("readiness.md", self._readiness("[unresolved] Who starts?", " "))
        self.write("conclusion.md", "# Conclusion\n\n## Decision Outcome\n\n- [blocked] Not yet.\n")
        self.say(
            self.owner,
            "initialized",
            "Workspace made",
            "drafting",
            [self.owner],
            doc="protocol.json",
        )

    def draft(self) -> None:
        """Write the deliverable."""
        self.memo("Draft")
        self.say(
            self.owner, "deliverable_drafted", "Drafted the memo", "drafting", [self.owner],
            doc=self.memo_name, role="primary",
        )  # fmt: skip

    def submit(self) -> None:
        """Send the proposal to the others."""
        if self.v2 and not self.memo_path.exists():
            self.draft()
        self.write(
            "proposal.md", f"# Proposal\n\n## Purpose\n\n{self.objective}\n\nPush, then poll.\n"
        )
        self.say(
            self.owner, "proposal_submitted", "Submitted the proposal", "reviewing",
            sorted(self.others), doc="proposal.md",
        )  # fmt: skip
        self.submitted = self.seq

    def review(self, name: str, question: str = "None.") -> None:
        """Answer the proposal; the last answer hands it back."""
        section = self._review(name, question)
        self.write("review.md", (self.folder / "review.md").read_text(encoding="utf-8") + section)
        rest = sorted(set(self.waiting) - {name})
        self.say(
            name, "review_submitted", "Reviewed the proposal", "reviewing" if rest else "revising",
            rest or [self.owner], doc="review.md", reply_to=self.submitted,
        )  # fmt: skip

    def reviews(self, question: str = "None.") -> None:
        """Everybody who is waited for answers."""
        for name in self.waiting:
            self.review(name, question)

    def revise(self) -> None:
        """Go on to the decision."""
        self.write(
            "proposal.md", f"# Proposal\n\n{self.objective}\n\nPush, then poll; server starts.\n"
        )
        self.say(
            self.owner, "proposal_revised", "Took up the reviews", "decision_review",
            [self.owner], doc="proposal.md",
        )  # fmt: skip

    def classify(self, item: str = "[resolved] Who starts? The server.") -> None:
        """Classify the open questions."""
        if not self.v2:
            self.write("decisions.md", "# Accepted Decisions\n\n- Push, then poll.\n")
        self.write("readiness.md", self._readiness(item, " "))
        self.say(
            self.owner, "question_classified", "Classified all questions", "decision_review",
            sorted(self.names), doc="readiness.md",
        )  # fmt: skip

    def accept(self, *names: str) -> None:
        """Accept the decisions; the last one hands the turn to the owner."""
        for name in names or tuple(self.waiting):
            rest = sorted(set(self.waiting) - {name})
            self.say(
                name, "decision_accepted", "Agreed", "decision_review" if rest else "readiness_check",
                rest or [self.owner], doc="decisions.md",
            )  # fmt: skip

    def freeze(self, digest: Callable[[str], str] = str) -> None:
        """Freeze the deliverable."""
        self.memo("Frozen")
        found = hashlib.sha256(self.memo_path.read_bytes()).hexdigest()
        self.say(
            self.owner, "deliverable_frozen", "Froze the memo", "readiness_check", [self.owner],
            doc=self.memo_name, role="primary", sha256=digest(found),
        )  # fmt: skip

    def ready(self, item: str = "[resolved] Who starts? The server.") -> None:
        """Pass the readiness check."""
        self.write("readiness.md", self._readiness(item, "x"))
        self.say(
            self.owner, "readiness_passed", "Ready", "readiness_check", [self.owner],
            doc="readiness.md",
        )  # fmt: skip

    def complete(self) -> None:
        """Conclude."""
        self.write("conclusion.md", self._conclusion())
        self.say(
            self.owner, "completed", "Done: proceed", "completed", [], doc="conclusion.md"
        )  # fmt: skip

    def block(self, name: str, reason: str) -> None:
        """Stop."""
        self.say(name, "blocked", reason, "blocked", [])

    def say(
        self, sender: str, event: str, summary: str, phase: str, waiting: list[str], **fields: Any
    ) -> None:
        """Append an event, legal or not, and bring protocol.json up to date."""
        self.at, self.seq = self.at + self.step, self.seq + 1
        self.phase, self.waiting = phase, waiting
        entry = {
            "seq": self.seq,
            "from": sender,
            "event": event,
            "at": self.time,
            "summary": summary,
        }
        if self.seq > 1:
            fields = {"reply_to": self.seq - 1} | fields
        self.log(self.line(entry | fields))
        self.charter()

    def line(self, entry: dict[str, Any]) -> str:
        """An event as it stands in the log, with its newline."""
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"

    def log(self, text: str) -> None:
        """Append text to the log as it is."""
        path = self.folder / "events.jsonl"
        self.write("events.jsonl", path.read_text("utf-8") + text)

    def charter(self, **changes: Any) -> None:
        """Write protocol.json; None leaves a key out."""
        fields = self._charter() | changes
        kept = {name: value for name, value in fields.items() if value is not None}
        self.write(
            "protocol.json",
            json.dumps(kept, ensure_ascii=False, indent=2, sort_keys=True) + "\n",
        )

    def memo(self, status: str) -> None:
        """Write the deliverable itself."""
        self.memo_path.parent.mkdir(parents=True, exist_ok=True)
        sections = "".join(f"\n## {name}\n\nAbout {name.lower()}.\n" for name in SECTIONS)
        self.memo_path.write_text(f"# Memo\n\nStatus: {status}\n{sections}", encoding="utf-8")
        self._date(self.memo_path)

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file, with the time of the story."""
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        self._date(path)

    def _date(self, path: Path) -> None:
        moment = max(self.at, self.start).timestamp()
        os.utime(path, (moment, moment))

    @property
    def time(self) -> str:
        """The moment of the last event."""
        return self.at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _charter(self) -> dict[str, Any]:
        common: dict[str, Any] = {
            "objective": self.objective,
            "participants": list(self.people),
            "completionGates": list(self.gates),
            "currentPhase": self.phase,
            "proposalOwner": self.owner,
            "waitingFor": self.waiting,
            "createdAt": START.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "updatedAt": self.time,
        }
        return common | (self._declared() if self.v2 else {})

    def _declared(self) -> dict[str, Any]:
        deliverables: dict[str, Any] = {
            "mode": "external" if self.repo_root else "internal",
            "dir": "deliverables",
            "owner": self.owner,
            "coAuthors": [],
            "primary": {"type": "decision-memo", "file": "decision.md", "checklist": []},
            "supporting": [],
            "attachments": [],
        }
        return {
            "protocol": "acp",
            "schemaVersion": 2,
            "objectiveGates": list(self.gates),
            "completionGates": [{"source": "objective", "text": gate} for gate in self.gates],
            "deliverables": deliverables,
            **({"repoRoot": self.repo_root} if self.repo_root else {}),
        }

    def _review(self, name: str, question: str) -> str:
        at = (self.at + self.step).strftime("%Y-%m-%dT%H:%M:%SZ")
        scope = f"Reviewed primary deliverable: `{self.memo_name}`\n\nReview Scope:\n- Primary deliverable completeness\n\n"
        return (
            f"\n## {at} - {name} - seq {self.seq + 1}\n\nContext:\n- Read `proposal.md` after "
            f"event seq `{self.submitted}`.\n\n{scope if self.v2 else ''}Position:\n- In favour."
            "\n\nConcerns:\n- None.\n\nRequired Changes:\n- Name who starts.\n\n"
            f"Questions:\n- {question}\n"
        )

    def _readiness(self, item: str, mark: str) -> str:
        gates = "".join(f"- [{mark}] {gate}\n" for gate in self.gates)
        return (
            f"# Readiness\n\n## Open Question Classification\n\n- {item}\n"
            "- [deferred_nonblocking] Metrics. Reason: not needed yet.\n\n## Completion Gates\n\n"
            f"{gates}\n## Final Design Document Checklist\n\n- [{mark}] Ready to implement\n"
        )

    def _conclusion(self) -> str:
        names = (
            ("Rationale", "Deliverable Receipt", "Accepted Decisions Summary", "Readiness Result")
            if self.v2
            else ("Rationale", "Accepted Decisions", "Implementation Approach")
        )
        rest = ("Assumptions", "Deferred Follow-ups", "Implementation Blockers", "Next Action")
        sections = "".join(f"\n## {name}\n\nAs agreed.\n" for name in (*names, *rest))
        receipt = f"\nSee `{self.memo_name}`.\n" if self.v2 else ""
        return f"# Conclusion\n\n## Decision Outcome\n\n- [proceed] Build it.\n{sections}{receipt}"
