"""What participants are told to do next, in the words that agents of this protocol know.

Source: folder protocol specification, "Phases" and "Polling And Watchers". The sentences
follow from the log's state and from what readiness.md and conclusion.md say; existing agents
match their beginnings. Users of acp read the names of its commands, users of the portable skill
those of its scripts. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.model.text import clean_line
from acp_core.protocols.folder.read.log import NEWLINES
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import V2

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts
    from acp_core.protocols.folder.schema.documents import Conclusion, Readiness
    from acp_core.protocols.folder.state import Machine

_SUBMIT = "update proposal.md, then append proposal_submitted."
_SUBMIT_V2 = (
    "draft the primary deliverable, append deliverable_drafted, update proposal.md, "
    "then append proposal_submitted."
)
_REVIEW = "append a structured review to review.md, then append review_submitted."
_REVIEW_V2 = (
    "review proposal.md and the primary deliverable, update review.md with Review Scope, "
    "then append review_submitted."
)
_LEAVE_ALONE = (
    "wait for the listed reviewer(s); do not edit proposal.md, decisions.md, readiness.md, "
    "or protocol.json unless blocking the collaboration."
)
_LEAVE_ALONE_V2 = (
    "wait for the listed reviewer(s); do not edit proposal.md or deliverables while reviewing "
    "unless blocking the collaboration."
)
_AWAIT_REVIEWS = "wait for the listed reviewer(s) to submit review_submitted or blocked."
_REVISE = "revise proposal.md, address required changes, then append proposal_revised."
_REVISE_V2 = (
    "revise proposal.md and deliverables as needed, append deliverable_revised if the "
    "deliverable changed, then append proposal_revised."
)
_ANOTHER_ROUND = " For another review round append proposal_submitted instead."
_NO_REVIEWER = (
    "append blocked: a proposal needs at least one reviewer, and protocol.json lists none; "
    "a human starts again with two participants or more."
)
_CLEAR = "classify readiness.md questions and clear blockers before readiness_passed."
_CHECK_LIST = "complete the final design checklist in readiness.md."
_PASS = "run {validate}, then append readiness_passed."
_FREEZE = (
    "freeze the primary deliverable with deliverable_frozen, run {validate}, "
    "then append readiness_passed."
)
_CONCLUDE = (
    "write conclusion.md with the final outcome, rationale, implementation approach, "
    "and next action."
)
_CONCLUDE_V2 = (
    "write conclusion.md with the final outcome, deliverable receipt, readiness result, "
    "and next action."
)
_PLACEHOLDER = " It must not contain “{word}” (line {line})."
_REFERENCE = " It must name the primary deliverable."
_CHECK_GATES = " Then check every completion gate in readiness.md."
_COMPLETE = "run {validate}, then append completed with doc=conclusion.md."
_STOP = "stop; collaboration is complete."
_START = "wait: the log holds no event yet; run {init} --resume to finish the start."
_LOST = "wait: the log holds no event yet, although protocol.json says more; tell a human."
_BLOCKED = "resolve the blocker or start a new collaboration round."

FULL = (
    "stop: events.jsonl has reached acp's limit, and no event can be appended; "
    "tell a human, who continues in a new folder with `acp continue`."
)
_UNKNOWN = (
    "stop: protocol.json has an unknown schemaVersion, and acp does not write to the folder; "
    "tell a human."
)
_TORN = (
    "stop: events.jsonl ends in a torn line, and no event can be appended; "
    "run `acp repair --folder {folder}`, or tell a human."
)
_RETURNS = (
    f"wait: the lines of events.jsonl end in carriage returns only: {NEWLINES}, or tell a human."
)
_LONG = 300  # characters of what is wrong with the log

COMMANDS = {"validate": "acp validate", "init": "acp init"}
"""What the sentences call the commands that they name."""


def next_action(machine: Machine, facts: Facts, participant: str, now: float) -> str:
    """What ``participant`` should do now, given the documents as they were read.

    Args:
        machine: the state after the log.
        facts: what was read.
        participant: whom it tells.
        now: seconds since 1970.
    """
    tail = bool(facts.tail_error or facts.tail_counts)
    refused = nothing_goes(
        machine, facts.dialect, facts.folder, returns=facts.bare_returns, full=facts.takes_no_more, torn=tail
    )  # fmt: skip
    if refused:
        return refused
    broken = facts.lines.broken
    unchanged = 0.0
    if machine.phase == "decision_review":
        from acp_core.protocols.folder.prompts import acceptance

        modified = facts.files["readiness.md"].modified
        unchanged = acceptance.seconds_unchanged(facts.history.last, modified, now)
    return advise(
        machine,
        participant,
        facts.readiness,
        facts.conclusion,
        facts.protocol or {},
        clean_line(broken.message, _LONG) if broken else "",
        unchanged=unchanged,
    )


def nothing_goes(
    machine: Machine, dialect: str, folder: str, *, returns: bool, full: bool, torn: bool
) -> str:
    """What to do where nobody can append anything, whatever the state; "" elsewhere.

    Args:
        machine: the state after the log.
        dialect: by protocol.json.
        folder: the collaboration.
        returns: carriage returns alone end the log's lines.
        full: the log is as large as acp reads.
        torn: it ends within a line.
    """
    if returns:
        return _RETURNS
    if machine.ending:
        return ""
    if full:
        return FULL
    if dialect == records.UNKNOWN_DIALECT:
        return _UNKNOWN
    if not torn:
        return ""
    import shlex

    return _TORN.format(folder=clean_line(shlex.quote(folder)))


def advise(
    machine: Machine,
    participant: str,
    readiness: Readiness | None,
    conclusion: Conclusion | None,
    protocol: dict[str, Any],
    broken: str = "",
    commands: Mapping[str, str] = COMMANDS,
    unchanged: float = 0.0,
) -> str:
    """What ``participant`` should do now.

    Args:
        machine: the state after the log.
        participant: who asks.
        readiness, conclusion: those documents, None where they cannot be read.
        protocol: protocol.json.
        broken: why the log can never become valid again, "" where it can.
        commands: what to call the commands, as `COMMANDS`.
        unchanged: for how many seconds neither the log nor readiness.md has changed.
    """
    if broken and not machine.ending:
        hopeless = f"the log can never become valid again ({broken})"
        return (
            f"append blocked: {hopeless}." if machine.count else f"stop: {hopeless}; tell a human."
        )
    if machine.phase == "decision_review" and not machine.ending:
        from acp_core.protocols.folder.prompts import acceptance

        return acceptance.advise(machine, participant, readiness, unchanged)
    sentence = _sentence(machine, participant, readiness, conclusion, protocol)
    for name, called in commands.items():
        sentence = sentence.replace(f"{{{name}}}", called)
    return sentence


def _sentence(
    machine: Machine,
    participant: str,
    readiness: Readiness | None,
    conclusion: Conclusion | None,
    protocol: dict[str, Any],
) -> str:
    """What ``participant`` should do now, commands as their names in braces."""
    if machine.ending == "completed":
        return _STOP
    phase, second = machine.phase, machine.dialect == V2
    owner, listed = participant == machine.owner, participant in machine.waiting
    if phase == "drafting":
        if not owner:
            return "wait for the proposal owner to submit the proposal."
        if not machine.has_reviewers:
            return _NO_REVIEWER
        return _SUBMIT_V2 if second and not machine.drafted else _SUBMIT
    if phase == "reviewing":
        if listed:
            return _REVIEW_V2 if second else _REVIEW
        return (_LEAVE_ALONE_V2 if second else _LEAVE_ALONE) if owner else _AWAIT_REVIEWS
    if phase == "revising":
        if not owner:
            return "wait for the proposal owner to revise."
        return (_REVISE_V2 if second else _REVISE) + _ANOTHER_ROUND
    if phase == "readiness_check":
        return _readiness_check(machine, owner, readiness, conclusion, protocol)
    if phase == "blocked":
        return _BLOCKED
    begun = protocol.get("currentPhase") not in (None, "drafting")
    return _LOST if begun else _START  # what was begun is not begun anew


def _is_open(readiness: Readiness) -> bool:
    return bool(readiness.blocking or readiness.unresolved or readiness.unreasoned)


def _readiness_check(
    machine: Machine,
    owner: bool,
    readiness: Readiness | None,
    conclusion: Conclusion | None,
    protocol: dict[str, Any],
) -> str:
    second = machine.dialect == V2
    if readiness is None or _is_open(readiness):
        return _CLEAR
    if not owner:
        step = "write conclusion.md and complete" if machine.passed else "pass readiness"
        return f"wait for the proposal owner to {step}."
    if readiness.ready is None:
        return _CHECK_LIST
    if not machine.passed:
        return _FREEZE if second and not machine.frozen else _PASS
    unmet = _are_unmet(readiness, records.gate_texts(protocol))
    lacking = "" if conclusion is None else _lacking(conclusion, machine.dialect)
    if lacking is not None:
        return (_CONCLUDE_V2 if second else _CONCLUDE) + lacking + (_CHECK_GATES if unmet else "")
    if unmet:
        return "check every completion gate in readiness.md with its exact text. Then " + _COMPLETE
    return _COMPLETE


def _are_unmet(readiness: Readiness, gates: Sequence[str]) -> bool:
    return any(gate not in readiness.checked for gate in gates)


def _lacking(conclusion: Conclusion, dialect: str) -> str | None:
    """What a written conclusion must not contain, or must name; None where it is finished."""
    from acp_core.protocols.folder.rules.checks import unfinished

    found = list(unfinished(conclusion, dialect))
    if not found:
        return _REFERENCE if dialect == V2 and not conclusion.referenced else None
    if [finding.code for finding in found] != ["ACP323"]:
        return ""
    word, line = conclusion.placeholders[0]
    return _PLACEHOLDER.format(word=clean_line(word, _LONG), line=line)
