"""Actions that append an event: a person's own turn, somebody else's, and `blocked`.

Source: folder protocol specification, "Events" and "Phases".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions.display import file_change, refusal, safe
from acp_core.protocols.folder.actions.turns import TURNS, Fields, Turn
from acp_core.protocols.folder.schema import Entry, deliverables
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.append import RACED, Prepared, Request, append, prepare
from acp_core.protocols.folder.write.opened import Opened, open_unlocked, path_of

_PROBE = "—"


def who_may(opened: Opened, event: str) -> list[str]:
    """The participants for whom an event is legal now, as far as the state machine says."""
    if "completed" in opened.machine.last:
        return []
    if event not in schema.events_of(opened.dialect):
        return []
    deliverable = event in schema.DELIVERABLE_EVENTS
    reference = deliverables.declare(opened.protocol).reference if deliverable else None
    doc = {"completed": "conclusion.md"}.get(event, reference)
    return [
        name
        for name in opened.participants
        if not opened.machine.problems(
            Entry(
                line=0,
                seq=opened.last_seq + 1,
                sender=name,
                event=event,
                at="",
                summary=_PROBE,
                doc=doc,
                reply_to=opened.last_seq,
                role="primary" if deliverable else None,
                sha256=None,
                key=None,
            )
        )
    ]


def turns(opened: Opened, humans: frozenset[str]) -> tuple[list[Action], list[Action]]:
    """A person's own turns now, and the turns that could be taken in an agent's place."""
    own: list[Action] = []
    others: list[Action] = []
    for turn in TURNS:
        allowed = who_may(opened, turn.event)
        people = [name for name in allowed if name in humans]
        if allowed:
            (own if people else others).append(_turn(opened, turn, people, allowed, humans))
    return own, others


def _turn(
    opened: Opened, turn: Turn, people: list[str], allowed: list[str], humans: frozenset[str]
) -> Action:
    ordered = [*people, *(name for name in allowed if name not in people)]
    fields = _who(ordered, "Who takes this turn.") | turn.fields(opened)
    about = "One short sentence for the log."
    fields["summary"] = (str, Field(turn.summary, title="Summary", description=about))
    label = turn.label if people else f"Act as {clean_line(ordered[0], 40)}: {turn.label.lower()}"
    sentence = turn.sentence
    if not people:
        sentence += (
            " No participant who may do this is marked as human: you would act in its place."
        )
    return Action(
        name=turn.event,
        label=label,
        sentence=sentence,
        inputs=model_of(turn.event, fields),
        preview=lambda answers: _preview(opened.folder, turn.compose, answers, humans),
        perform=lambda answers: _perform(opened.folder, turn.compose, answers),
        risky=not people or turn.event == "completed",
    )


def block(opened: Opened, humans: frozenset[str]) -> Action | None:
    """Stop the collaboration, on behalf of a participant."""
    allowed = who_may(opened, "blocked")
    if not allowed or opened.machine.phase == "blocked":
        return None
    waited = [name for name in opened.machine.waiting if name in allowed]
    first = [name for name in allowed if name in humans] or waited
    ordered = [*first, *(name for name in allowed if name not in first)]
    fields = _who(ordered, "On whose behalf; the event is recorded as that participant's.")
    about = "What stands in the way, in one sentence; agents and people read it."
    fields["reason"] = (str, Field(min_length=1, title="Reason", description=about))

    def compose(here: Opened, answers: Any) -> Request:
        return _blocked(here, answers, humans)

    return Action(
        name="block",
        label="Block",
        sentence="Stop the collaboration: everybody stops until it is continued in a new folder.",
        inputs=model_of("block", fields),
        preview=lambda answers: _preview(opened.folder, compose, answers, humans, block=True),
        perform=lambda answers: _perform(opened.folder, compose, answers),
        risky=True,
    )


def _blocked(opened: Opened, answers: Any, humans: frozenset[str]) -> Request:
    reason = answers.reason.strip()
    if not reason:
        raise Refused("say what stands in the way")
    name = answers.participant
    if name not in humans:
        reason = f"{reason} (said by a human coordinator on behalf of {name})"
    return Request(
        folder=opened.folder,
        participant=name,
        event="blocked",
        summary=reason,
        reply_to=opened.last_seq,
        expect_seq=opened.last_seq,
    )


def _who(names: list[str], about: str) -> Fields:
    choice = Literal[tuple(names)]  # type: ignore[valid-type]
    return {"participant": (choice, Field(names[0], title="Participant", description=about))}


def model_of(name: str, fields: Fields) -> type[BaseModel]:
    """A pydantic model of these fields; their titles are made safe to show."""
    for _, info in fields.values():
        if info.title:
            info.title = clean_line(info.title, 200)
    made: type[BaseModel] = create_model("".join(map(str.capitalize, name.split("_"))), **fields)
    return made


def _preview(
    folder: str,
    compose: Callable[[Opened, Any], Request],
    answers: Any,
    humans: frozenset[str],
    *,
    block: bool = False,
) -> Preview:
    try:
        opened = open_unlocked(folder)
        request = compose(opened, answers)
        prepared = prepare(opened, request, datetime.now(UTC))
    except (Refused, OSError) as error:
        return Preview(sentence="", refused=refusal(error))
    entry = prepared.entry
    warnings = [safe(warning) for warning in prepared.warnings]
    if entry.sender not in humans and not block:
        warnings.append(
            f"{clean_line(entry.sender)} is not marked as human: you speak in its place, and its "
            "own program may be doing the same turn now"
        )
    machine = prepared.after.machine
    waiting = ", ".join(machine.waiting) or "nobody"
    return Preview(
        sentence=safe(
            f"Append seq {entry.name}: {entry.event} from {entry.sender}. "
            f"Then: {machine.phase}, waiting for {waiting}."
        ),
        changes=_changes(opened, prepared),
        command=_command(request),
        warnings=tuple(warnings),
    )


def _changes(opened: Opened, prepared: Prepared) -> tuple[Change, ...]:
    edits = [file_change(edit.path, edit.name, edit.before, edit.after) for edit in prepared.edits]
    protocol = schema.encode_protocol(opened.protocol)
    return (
        *edits,
        file_change(path_of(opened.folder, schema.LOG_FILE), schema.LOG_FILE, b"", prepared.line),
        file_change(
            path_of(opened.folder, schema.PROTOCOL_FILE),
            schema.PROTOCOL_FILE,
            protocol,
            prepared.protocol,
        ),
    )


def _command(request: Request) -> tuple[str, ...]:
    """The command that appends the same event (the documents are then written beforehand)."""
    given = (
        ("--folder", request.folder),
        ("--participant", request.participant),
        ("--event", request.event),
        ("--summary", request.summary),
        ("--doc", request.doc),
        ("--reply-to", request.reply_to),
        ("--role", request.role),
        ("--review-file", "REVIEW.md" if request.review is not None else None),
    )
    words = [word for flag, value in given if value is not None for word in (flag, str(value))]
    return tuple(safe(word) for word in ("acp", "append", *words))


def _perform(folder: str, compose: Callable[[Opened, Any], Request], answers: Any) -> Outcome:
    try:
        appended = append(compose(open_unlocked(folder), answers))
    except (Refused, OSError) as error:
        return Outcome(OutcomeState.REFUSED, refusal(error))
    entry = appended.entry
    sentence = f"Appended seq {entry.name}: {entry.event} from {entry.sender}."
    if appended.existing:
        sentence = f"It was in the log already: seq {entry.name}."
    if appended.raced:
        sentence += f" A writer that takes no lock slipped in (exit code {RACED}): validate."
    return Outcome(OutcomeState.DONE, safe(" ".join([sentence, *appended.warnings])))
