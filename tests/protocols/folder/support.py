"""Folder collaborations made by hand, file by file, as other tools leave them.

`make_v1` and `make_v2` tell one story each, up to a given point; `say` appends an event and
brings protocol.json up to date as any tool would. File times are those of the events, so
that a folder looks as if it had lain there for long: nothing is "being written".
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STEP = timedelta(minutes=10)
OBJECTIVE = "Choose how the cache is invalidated"
GATES = ("The message contract is agreed", "The rollout order is agreed")
PEOPLE = ("server", "reader", "reviewer")
UPTO = (
    "drafting",
    "reviewing",
    "revising",
    "decision_review",
    "classified",
    "readiness_check",
    "passed",
    "completed",
)
PRIMARY = "deliverables/decision.md"


def make_v1(
    folder: Path,
    upto: str = "reviewing",
    *,
    participants: tuple[str, ...] = PEOPLE,
    objective: str = OBJECTIVE,
    gates: tuple[str, ...] = GATES,
    rounds: int = 1,
    blocked: str = "",
) -> Path:
    """A valid v1 collaboration in ``folder`` up to a point of `UPTO`; returns the folder.

    The first participant owns the proposal. With ``rounds`` above 1 the proposal went to the
    reviewers that many times before the story goes on. ``blocked`` is the summary of a last
    ``blocked`` event by the last participant.
    """
    story = _Story(folder, participants, objective, gates)
    story.begin()
    owner, others = participants[0], participants[1:]
    reached = UPTO.index(upto)
    if reached >= 1:
        story.rounds(owner, others, rounds, stop_waiting=upto == "reviewing")
    story.end(owner, participants, reached)
    if blocked:
        story.event(participants[-1], "blocked", blocked, reply_to=story.seq)
    return folder


def make_v2(
    folder: Path,
    upto: str = "reviewing",
    *,
    participants: tuple[str, ...] = PEOPLE,
    objective: str = OBJECTIVE,
    gates: tuple[str, ...] = GATES,
    rounds: int = 1,
    blocked: str = "",
    repo_root: str = "",
) -> Path:
    """The same story in the dialect with deliverables: a decision memo.

    With ``repo_root`` (such as ``..``) the deliverable lies outside the folder, in
    ``deliverables/`` of that folder's parent.
    """
    story = _Story(folder, participants, objective, gates, v2=True, repo_root=repo_root)
    story.begin()
    owner, others = participants[0], participants[1:]
    reached = UPTO.index(upto)
    if reached >= 1:
        story.draft(owner)
        story.rounds(owner, others, rounds, stop_waiting=upto == "reviewing")
    story.end(owner, participants, reached)
    if blocked:
        story.event(participants[-1], "blocked", blocked, reply_to=story.seq)
    return folder


def say(
    folder: Path,
    sender: str,
    event: str,
    summary: str = "Said so.",
    *,
    at: datetime | str | None = None,
    seq: int | None = None,
    **fields: Any,
) -> int:
    """Append an event as it is, legal or not, and update protocol.json; returns its seq."""
    from acp_core.protocols.folder import schema, state

    lines = [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    seq = seq or (lines[-1]["seq"] + 1 if lines else 1)
    if at is None:
        last = datetime.fromisoformat(lines[-1]["at"]) if lines else START
        at = max(last, datetime.now(UTC))
    moment = at if isinstance(at, str) else at.strftime("%Y-%m-%dT%H:%M:%SZ")
    entry = {"seq": seq, "from": sender, "event": event, "at": moment, "summary": summary}
    if seq > 1:
        entry["reply_to"] = seq - 1
    with (folder / "events.jsonl").open("ab") as log:
        log.write(line_of(entry | fields))
    protocol = read_protocol(folder)
    machine, _ = state.derive(
        (
            item
            for item in schema.parse_lines((folder / "events.jsonl").read_bytes())
            if isinstance(item, schema.Entry)
        ),
        schema.participant_ids(protocol),
        schema.dialect_of(protocol),
    )
    protocol |= {
        "currentPhase": machine.phase,
        "proposalOwner": machine.owner,
        "waitingFor": machine.waiting,
        "updatedAt": moment,
    }
    write_protocol(folder, protocol)
    return seq


def line_of(entry: dict[str, Any]) -> bytes:
    """An event as the log holds it, with its newline."""
    order = ("seq", "from", "event", "at", "summary", "doc", "reply_to", "role", "sha256", "key")
    ordered = {name: entry[name] for name in order if name in entry} | entry
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_protocol(folder: Path) -> dict[str, Any]:
    """protocol.json as it stands."""
    protocol: dict[str, Any] = json.loads((folder / "protocol.json").read_text(encoding="utf-8"))
    return protocol


def write_protocol(folder: Path, protocol: dict[str, Any]) -> None:
    """Replace protocol.json."""
    text = json.dumps(protocol, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    (folder / "protocol.json").write_text(text, encoding="utf-8")


def change_protocol(folder: Path, **changes: Any) -> None:
    """Change some keys of protocol.json; None removes one."""
    protocol = read_protocol(folder) | changes
    write_protocol(folder, {key: value for key, value in protocol.items() if value is not None})
    age(folder)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace the one place in a document where ``old`` stands."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {name}"
    path.write_text(text.replace(old, new), encoding="utf-8")
    age(folder, name)


def age(folder: Path, *names: str, at: datetime | None = None) -> None:
    """Give files (all of them where none is named) the time of the last event, or ``at``."""
    moment = at or _last_time(folder)
    paths = [folder / name for name in names] if names else [*folder.rglob("*")]
    for path in paths:
        if path.is_file():
            os.utime(path, (moment.timestamp(), moment.timestamp()))


def _last_time(folder: Path) -> datetime:
    """The time of the last event that can be read, however damaged the log is."""
    log = folder / "events.jsonl"
    for line in reversed(log.read_bytes().splitlines() if log.is_file() else []):
        try:
            at = datetime.fromisoformat(json.loads(line)["at"])
            if at < datetime.now(at.tzinfo):  # no file was changed later than now
                return at
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return START


class _Story:
    """Writes one collaboration; what protocol.json must say is told, not derived."""

    def __init__(
        self,
        folder: Path,
        participants: tuple[str, ...],
        objective: str,
        gates: tuple[str, ...],
        *,
        v2: bool = False,
        repo_root: str = "",
    ) -> None:
        self.folder, self.v2, self.repo_root = folder, v2, repo_root
        self.participants, self.objective, self.gates = participants, objective, gates
        self.seq = 0
        self.moment = START
        self.phase, self.waiting = "drafting", [participants[0]]
        base = folder / repo_root if repo_root else folder
        self.deliverable = base / PRIMARY
        self.reference = "external:decision.md" if repo_root else PRIMARY

    def begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "events.jsonl").write_bytes(b"")
        self.write("README.md", f"# Collaboration\n\nObjective: {self.objective}\n")
        self.write("proposal.md", f"# Proposal\n\n## Purpose\n\n{self.objective}\n")
        self.write("review.md", "# Reviews\n\nOne section per review.\n")
        decided = (
            f"\n### D1. Initial deliverable declaration\n\n- Decision: write a memo.\n"
            f"- Rationale: it is short.\n- Reflected in: `{self.reference}`\n"
        )
        self.write("decisions.md", "# Accepted Decisions\n" + (decided if self.v2 else ""))
        self.write("readiness.md", self.readiness("unresolved", " "))
        self.write(
            "conclusion.md",
            "# Conclusion\n\n## Decision Outcome\n\n- [blocked] Not complete.\n",
        )
        if self.v2:
            self.deliverable.parent.mkdir(parents=True, exist_ok=True)
            self.memo("Draft")
        self.event(self.participants[0], "initialized", "Workspace made", doc="protocol.json")

    def draft(self, owner: str) -> None:
        self.memo("Draft")
        self.event(
            owner,
            "deliverable_drafted",
            "Drafted the memo",
            doc=self.reference,
            reply_to=self.seq,
            role="primary",
        )

    def rounds(self, owner: str, others: tuple[str, ...], count: int, stop_waiting: bool) -> None:
        for number in range(1, count + 1):
            text = f"# Proposal\n\n## Purpose\n\n{self.objective}\n\nVersion {number}.\n"
            self.write("proposal.md", text)
            self.phase, self.waiting = "reviewing", sorted(others)
            submitted = self.event(
                owner,
                "proposal_submitted",
                f"Submitted version {number}",
                doc="proposal.md",
                reply_to=self.seq,
            )
            if number == count and stop_waiting:
                return
            for position, name in enumerate(others):
                rest = sorted(others[position + 1 :])
                self.phase = "reviewing" if rest else "revising"
                self.waiting = rest or [owner]
                self.review(name, submitted)

    def review(self, name: str, submitted: int) -> None:
        moment = (self.moment + STEP).strftime("%Y-%m-%dT%H:%M:%SZ")
        scope = (
            f"Reviewed primary deliverable: `{self.reference}`\n\nReview Scope:\n"
            "- Primary deliverable completeness\n\n"
        )
        section = (
            f"\n## {moment} - {name} - seq {self.seq + 1}\n\nContext:\n"
            f"- Read `proposal.md` after event seq `{submitted}`.\n\n{scope if self.v2 else ''}"
            "Position:\n- In favour.\n\nConcerns:\n- None.\n\n"
            "Required Changes:\n- Name the owner of each step.\n\nQuestions:\n- None.\n"
        )
        path = self.folder / "review.md"
        self.write("review.md", path.read_text(encoding="utf-8") + section)
        self.event(name, "review_submitted", "Reviewed it", doc="review.md", reply_to=submitted)

    def end(self, owner: str, participants: tuple[str, ...], reached: int) -> None:
        if reached >= 3:
            self.write("proposal.md", f"# Proposal\n\n{self.objective}\n\nFinal version.\n")
            self.phase, self.waiting = "decision_review", [owner]
            self.event(
                owner, "proposal_revised", "Revised it", doc="proposal.md", reply_to=self.seq
            )
        if reached >= 4:
            if not self.v2:
                self.write("decisions.md", "# Accepted Decisions\n\n- Push, then poll.\n")
            self.write("readiness.md", self.readiness("resolved", " "))
            self.waiting = sorted(participants)
            self.event(
                owner,
                "question_classified",
                "Classified all questions",
                doc="readiness.md",
                reply_to=self.seq,
            )
        if reached >= 5:
            for position, name in enumerate(participants):
                rest = sorted(participants[position + 1 :])
                self.phase = "decision_review" if rest else "readiness_check"
                self.waiting = rest or [owner]
                self.event(
                    name, "decision_accepted", "Agreed", doc="decisions.md", reply_to=self.seq
                )
        if reached >= 6:
            self.pass_readiness(owner)
        if reached >= 7:
            self.write("conclusion.md", self.conclusion())
            self.phase, self.waiting = "completed", []
            self.event(owner, "completed", "Done: proceed", doc="conclusion.md", reply_to=self.seq)

    def pass_readiness(self, owner: str) -> None:
        if self.v2:
            self.memo("Frozen")
            digest = hashlib.sha256(self.deliverable.read_bytes()).hexdigest()
            self.event(
                owner,
                "deliverable_frozen",
                "Froze the memo",
                doc=self.reference,
                reply_to=self.seq,
                role="primary",
                sha256=digest,
            )
        self.write("readiness.md", self.readiness("resolved", "x"))
        self.event(owner, "readiness_passed", "Ready", doc="readiness.md", reply_to=self.seq)

    def memo(self, status: str) -> None:
        sections = "".join(
            f"\n## {name}\n\nSomething about {name.lower()}.\n"
            for name in (
                "Question",
                "Recommendation",
                "Options",
                "Tradeoffs",
                "Decision",
                "Next Action",
            )
        )
        self.deliverable.write_text(f"# Memo\n\nStatus: {status}\n{sections}", encoding="utf-8")
        self.touch(self.deliverable)

    def readiness(self, word: str, mark: str) -> str:
        gates = "".join(f"- [{mark}] {gate}\n" for gate in self.gates)
        return (
            "# Readiness\n\n## Open Question Classification\n\n"
            f"- [{word}] Who starts?\n- [deferred_nonblocking] Metrics. Reason: not needed yet.\n"
            f"\n## Completion Gates\n\n{gates}\n## Final Design Document Checklist\n\n"
            f"- [{mark}] Ready to implement\n"
        )

    def conclusion(self) -> str:
        names = (
            ("Rationale", "Deliverable Receipt", "Accepted Decisions Summary", "Readiness Result")
            if self.v2
            else ("Rationale", "Accepted Decisions", "Implementation Approach")
        )
        rest = ("Assumptions", "Deferred Follow-ups", "Implementation Blockers", "Next Action")
        sections = "".join(f"\n## {name}\n\nAs agreed.\n" for name in (*names, *rest))
        receipt = f"\nSee `{self.reference}`.\n" if self.v2 else ""
        return f"# Conclusion\n\n## Decision Outcome\n\n- [proceed] Build it.\n{sections}{receipt}"

    def event(self, sender: str, event: str, summary: str, **fields: Any) -> int:
        if self.seq:
            self.moment += STEP
        self.seq += 1
        if event == "blocked":
            self.phase, self.waiting = "blocked", []
        moment = self.moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = {"seq": self.seq, "from": sender, "event": event, "at": moment, "summary": summary}
        with (self.folder / "events.jsonl").open("ab") as log:
            log.write(line_of(entry | fields))
        write_protocol(self.folder, self.protocol(moment))
        self.touch(self.folder / "events.jsonl")
        self.touch(self.folder / "protocol.json")
        return self.seq

    def protocol(self, moment: str) -> dict[str, Any]:
        common: dict[str, Any] = {
            "objective": self.objective,
            "participants": [{"id": name} for name in self.participants],
            "completionGates": list(self.gates),
            "currentPhase": self.phase,
            "proposalOwner": self.participants[0],
            "waitingFor": self.waiting,
            "createdAt": START.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "updatedAt": moment,
        }
        if not self.v2:
            return common
        return common | {
            "protocol": "acp",
            "schemaVersion": 2,
            "objectiveGates": list(self.gates),
            "completionGates": [{"source": "objective", "text": gate} for gate in self.gates],
            "deliverables": {
                "mode": "external" if self.repo_root else "internal",
                "dir": "deliverables",
                "owner": self.participants[0],
                "coAuthors": [],
                "primary": {"type": "decision-memo", "file": "decision.md", "checklist": []},
                "supporting": [],
                "attachments": [],
            },
            **({"repoRoot": self.repo_root} if self.repo_root else {}),
        }

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")
        self.touch(self.folder / name)

    def touch(self, path: Path) -> None:
        os.utime(path, (self.moment.timestamp(), self.moment.timestamp()))
