"""What a rule says: it becomes a finding and, where it keeps the run from going on, a cause.

Each code has its meaning, and what to do unless the finding itself says it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from acp_core.model import Finding, Matter, Severity
from acp_core.model.format import sentence_case
from acp_core.model.matter import OWNER, TIME, About, decision, verdicts
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import ActiveTurn, Pending
from acp_core.protocols.governed.schema import APPROVE_GATE, YOU, Loaded, Log, gate_called
from acp_core.protocols.kit.findings import UNSEEN_TEXT

_RESYNC = "Resync: all workstreams cross, or acp reports the obstacle."
_REASSIGN = "Reassign the turn."

_RUN: dict[str, tuple[str, str]] = {
    "CONFIG": ("A run needs a complete configuration.", "Correct agentxchain.json."),
    "HOOK": (
        "Only hooks of certain moments are run, and only some of them can block.",
        "Move the hook to a moment that acp supports, or leave it to another program.",
    ),
    "FILE_UNREADABLE": (
        "Without this file, acp does not know the state of the run, and writes nothing.",
        "Correct the file, or restore it from version control.",
    ),
    "LOG_LINE": (
        "A line that cannot be read hides what happened.",
        "Correct the line; acp never rewrites an append-only log.",
    ),
    "RECORD": (
        "Other programs rely on the fields of each record.",
        "Check who wrote it; acp never rewrites an append-only log.",
    ),
    "STATE": (
        "The fields of the state must agree, or no program can continue the run.",
        "Run the action that the finding names.",
    ),
    "INTERRUPTED": (
        "Half of a write is on disk.",
        "Run any command that writes: it completes the write, or rolls it back.",
    ),
    "TRANSACTION": (
        "The history, the ledger and the state may disagree until that write is finished.",
        "Let agentxchain finish it, or review the file and set it aside.",
    ),
    "RESERVED_CHANGED": (
        "Only acp and agentxchain may write the state and the logs of a run.",
        "Review the changes; then bring back the files that acp wrote, or take them as they are.",
    ),
    "SEALED_ANEW": ("The agentxchain program continued the run as acp would.", "No action needed."),
    "ACCEPTED_LOST": (
        "The state names an accepted turn that the history lacks.",
        "Restore the history from version control or a backup.",
    ),
    "ACCEPTED_ACTIVE": (
        "A turn is either active or in the history.",
        "Remove the turn from active_turns.",
    ),
    "TURN_OF_OTHER": (
        "The active turn belongs to another run.",
        "Reject the turn, and reassign it in this run.",
    ),
    "TURN_CONFLICTED": (
        "Two turns changed the same files.",
        "Reject the turn so that it is redone on top of the accepted changes.",
    ),
    "TURN_GHOST": (
        "A turn was dispatched, but its agent never started or made no progress.",
        "Accept the result if there is one, or reassign the turn.",
    ),
    "TURN_FAILED": (
        "A result that fails the checks does not enter the history.",
        "Apply the proposed corrections and accept the result, or reject it with a reason.",
    ),
    "TURN_RETRY": ("A rejected turn waits for its next attempt.", "Reassign the turn now."),
    "TURN_NO_BUNDLE": ("Without a bundle, no agent can take the turn.", _REASSIGN),
    "TURN_LOST": ("An agent that ends without a result does not continue its turn.", _REASSIGN),
    "TURN_HELD": (
        "A turn in this status waits for a person.",
        "Reject the turn to reassign it, or stop the run until this is resolved.",
    ),
    "TURN_OVERDUE": (
        "A turn must stage its result before its deadline.",
        "Check on the agent, or reject the turn to reassign it.",
    ),
    "RESULT": (
        "acp checks a staged result before the result enters the history.",
        "Apply the proposed corrections if there are any, or let the role write the result again.",
    ),
    "BUNDLE": (
        "The agent may have received other instructions than those that were assigned.",
        _REASSIGN,
    ),
    "RUN_BLOCKED": (
        "A blocked run assigns no turns.",
        "Resolve what blocks the run, then unblock it.",
    ),
    "GATE_FAILED": (
        "The run can only leave a phase when the conditions of its gate are met.",
        "Let a role of this phase provide what is missing.",
    ),
    "REQUEST_DROPPED": (
        "The result was accepted, but without its request to leave the phase.",
        "Write the gate's files and let the turn be redone.",
    ),
    "REQUEST_QUEUED": (
        "No turn is active, so the queued request waits.",
        "Let a new turn request it again.",
    ),
    "APPROVED_NOT_MOVED": (
        "An approved gate must move the run to the next phase.",
        "Check who wrote the state last; let a turn request the gate again.",
    ),
    "SESSION_DRIFT": (
        "The checkpoint of agentxchain does not match the run.",
        "No action needed, unless you continue the run with agentxchain: let it start over.",
    ),
    "HOOK_VETO": (
        "A hook objects to the gate or the result that waits for you.",
        "Send the work back with the hook's objection; approve or accept only if the hook is wrong.",
    ),
}

_INITIATIVE: dict[str, tuple[str, str]] = {
    "MULTI_CONFIG": (
        "An initiative needs a complete configuration.",
        "Correct agentxchain-multi.json.",
    ),
    "PATH": (
        "acp never acts on a path outside the initiative.",
        "Use a path inside the folder of the initiative.",
    ),
    "COORDINATOR_STATE": (
        "The state of the coordinator must agree with its ledger.",
        "Correct the file, or step the coordinator, which records the state that it observes.",
    ),
    "CHILD_STATE": (
        "A workstream with an unreadable state holds up all others.",
        "Correct, restore or rebuild the state of the workstream.",
    ),
    "RUN_ID": (
        "The coordinator linked another run of this workstream.",
        "Restore that run, or start the initiative again with the other.",
    ),
    "SUPER_RUN_ID": (
        "A run only crosses barriers of the initiative that its state names.",
        "Write the initiative's id into the state of the workstream.",
    ),
    "COMPLETED_EARLY": (
        "An initiative is completed when all its workstreams are.",
        "Approve the completion of the other runs.",
    ),
    "INITIATIVE_BLOCKED": (
        "A blocked initiative crosses no barrier.",
        "Fix the failure, then resync.",
    ),
    "RESYNC_FAILED": (
        "All workstreams cross a barrier together, or none does.",
        "Fix the failure, then resync.",
    ),
    "APPROVED_NOT_CROSSED": ("An approved barrier must be crossed by all workstreams.", _RESYNC),
    "BARRIER_PHASE": (
        "No workstream can reach a barrier in an unknown phase.",
        "Name a phase of the workstreams.",
    ),
    "BARRIER_UNREACHABLE": (
        "The other workstreams would wait at this barrier forever.",
        "Add the phase to the workstream, start another run there, or remove the barrier.",
    ),
    "BARRIER_CROSSED": (
        "Only a person opens a barrier.",
        "Run the command that the finding names: it moves the workstream back to the barrier.",
    ),
    "BARRIER_FALSE": (
        "The barrier would open although one of its workstreams is blocked.",
        "Resolve what blocks the workstream before you approve the gate.",
    ),
    "BARRIER_NO_GATE": (
        "acp can only ask you to approve a gate that a run requested.",
        "Approve the runs one by one.",
    ),
    "BARRIER_STUCK": (
        "Accepted results are missing at the barrier.",
        "Accept the missing results in their repositories manually.",
    ),
    "REPO_COMPLETED": (
        "A workstream that ended takes no part in later phases.",
        "Resync, then start another run there if the later phases still need it.",
    ),
    "REPO_BLOCKED": (
        "The coordinator waits for a workstream without knowing that it is blocked.",
        "Resolve what blocks the workstream, then resync.",
    ),
    "CONTEXT_EMPTY": (
        "The agents cannot read the decisions of the other workstreams.",
        "Write the decisions to TALK.md.",
    ),
}

UNSEEN = "UNSEEN_TEXT"
CODES = _RUN | _INITIATIVE | {UNSEEN: UNSEEN_TEXT}


class Trouble(NamedTuple):
    """One thing that is wrong. ``group`` is the letter and number of its cause, "" for none.

    ``action`` names what mends it, ``others`` what else may help, ``evidence`` what was observed;
    ``root`` says that it is the reason for the rest; ``about`` tells it from others of its code
    where its message does not; ``explains`` are the keys of needs that are this very thing;
    ``given`` are inputs of ``action``.
    """

    code: str
    severity: Severity
    message: str
    remedy: str = ""
    document: str | None = None
    line: int | None = None
    group: str = ""
    since: datetime | None = None
    participant: str | None = None
    wanted: bool = True
    action: str = ""
    others: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    certain: bool = True
    root: bool = False
    about: str = ""
    explains: tuple[str, ...] = ()
    given: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Stays the same as long as it is the same trouble, and differs from every other."""
        named = f"{self.group}:{self.code}:{self.about or self.message}"
        return named[:200]

    def finding(self) -> Finding:
        """As a finding."""
        explanation, remedy = CODES[self.code]
        return Finding(
            self.code, self.severity, self.message, self.document, self.line,
            explanation=explanation, remedy=self.remedy or remedy,
        )  # fmt: skip

    def cause(self) -> Matter:
        """As a cause; only where ``group`` is set."""
        return Matter(
            self.group,
            self.message.rstrip("."),
            instruction=self.remedy.rstrip("."),
            move=OWNER if self.wanted else TIME,
            evidence=self.evidence,
            certain=self.certain,
            verdicts=verdicts(self.action or None, self.given, self.others),
            about=About(participant=self.participant, document=self.document, line=self.line),
            since=self.since,
            key=self.key,
            explains=self.explains,
            root=self.root,
        )


_ELSE = {schema.BRING_BACK: (schema.TAKE_FILES,)}
"""What else may mend what an act mends."""


def of_obstacles(obstacles: Iterable[Matter]) -> list[Trouble]:
    """What stands in the way of writes, as errors in the files; what is around them is none."""
    return [
        Trouble(
            each.key.split(":")[1],
            Severity.ERROR,
            f"{sentence_case(each.sentence)}.",
            each.instruction,
            each.about.document,
            each.about.line,
            each.code,
            participant=each.about.participant,
            action=each.remedy,
            others=_ELSE.get(each.remedy, ()),
            given=each.given,
            evidence=each.evidence,
            root=True,
            about=each.key.split(":", 2)[2],
        )
        for each in obstacles
        if not each.key.startswith("obstacle:")
    ]


def file_troubles(document: str, loaded: Loaded, needed: bool = True) -> list[Trouble]:
    """What is wrong with a file that should hold one JSON object."""
    if not loaded.reason or (loaded.missing and not needed):
        return []
    return [
        Trouble(
            "FILE_UNREADABLE",
            Severity.ERROR,
            f"{document} cannot be read: {schema.why(loaded.reason)}",
            "Correct the file, or restore it from version control.",
            document,
            group="A1",
            about=document,
        )
    ]


def log_troubles(document: str, log: Log) -> list[Trouble]:
    """What is wrong with the lines of a log."""
    return [
        Trouble(
            "LOG_LINE",
            Severity.ERROR,
            f"{document}: {'line ' + str(line) + ' ' if line else 'the file '}{reason}",
            "Correct the line; acp never rewrites an append-only log.",
            document,
            line or None,
        )
        for line, reason in log.problems
    ]


def gate_need(pending: Pending) -> Matter:
    """The need that a gate is."""
    text = f"The gate {gate_called(pending.gate)} needs your approval"
    key = f"gate:{pending.gate}:{pending.turn}:{pending.since}"
    return decision(key, "GATE", text, YOU, pending.since, APPROVE_GATE)


def staged_key(turn: ActiveTurn) -> str:
    """The key of the need that a staged result is."""
    return f"staged:{turn.id}:{turn.attempt}"
