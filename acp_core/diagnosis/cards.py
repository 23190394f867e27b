"""The matters that a person has to decide now, and whether a decision is still about the same one.

Made by each protocol (`Collaboration.cards`); here the verdicts that an obstacle forbids are left out.
Requests for permission of participants' programs come first: a process waits for each. All that a
program wrote is made safe to show here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.requests import ALLOW_ONCE, FileDiff, PermissionRequest, choice_text
from acp_core.loops.acts.names import ANSWER_PERMISSION, STOP_LOOP
from acp_core.model import Action, Change, Matter, Row, Snapshot, Target, Tone, matter
from acp_core.model.action_field import Kind
from acp_core.model.action_spec import Intent
from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.format import clock, dated, names_in, sentence_case
from acp_core.model.matter import About, verdicts
from acp_core.model.text import clean, clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.documents import MOST, counted, texts
from acp_core.protocols.kit.schema import fields
from acp_core.protocols.kit.wording import difference, lines_of, safe

Offered = Callable[[], Iterable[Action]]

PERMISSION_CODE = "B17"
_IN_COMMAND = frozenset({"command", "description", "cwd"})
_IN_DIFFS = frozenset({"file_path", "filepath", "content", "old_string", "new_string", "diff"})
_SHORT = 100  # characters of a command in a headline
_ANSWERS = 7  # choices of a question that have a key
_LINES = 40  # lines of a command or an input on the card itself; the rest is opened


def permission_causes(waiting: Iterable[OpenRequest]) -> Iterator[Matter]:
    """A cause for each request: its program goes on only when it is answered."""
    for each in waiting:
        name = safe_id(each.participant)
        until = (
            f"acp rejects it at {dated(each.until)}" if each.until else "it waits until you answer"
        )
        yield Matter(
            PERMISSION_CODE,
            f"{name}'s agent {permission_wish(each.request)}",
            instruction="answer it",
            kind=matter.Kind.PERMISSION,
            evidence=(
                f"asked at {dated(each.asked)}; {until}",
                f"policy: {safe(each.why)}",
                *(f"command: {safe(line)}" for line in _command_lines(each.request)[:MOST]),
                *(f"path: {safe(path)}" for path in each.request.locations[:MOST]),
            ),
            verdicts=verdicts(ANSWER_PERMISSION, (("request", each.id),), (STOP_LOOP,)),
            about=About(participant=name),
            since=each.asked,
            until=matter.Until(each.until) if each.until else None,
            key=f"{PERMISSION_CODE}:{name}:{each.id}",
            root=True,
        )


def permission_wish(request: PermissionRequest) -> str:
    """What a program asks for, in a few words that continue "the agent ..."."""
    if request.questions:
        return f"asks you: {clean_line(request.questions[0].text, _SHORT)}"
    if request.server:
        tool = clean_line(f"{request.tool} of {request.server}", _SHORT)
        return f"asks to use the tool {tool}"
    if request.command is not None:
        return f"asks to run: {clean_line(request.command, _SHORT)}"
    if request.diffs:
        more = f" and {len(request.diffs) - 1} more" if len(request.diffs) > 1 else ""
        return f"asks to change {clean_line(request.diffs[0].path, _SHORT)}{more}"
    return f"asks for permission: {clean_line(request.title, _SHORT)}"


def permission_card(opened: OpenRequest) -> Card:
    """The card on which a request is answered."""
    request, name = opened.request, safe_id(opened.participant)
    changes = tuple(_change(each) for each in request.diffs[:MOST])
    changed = {each.path for each in request.diffs[:MOST]}  # they have rows of their own
    command = _command_lines(request)
    sections = (
        _whole("Command", command),
        texts("Runs in", [request.workdir]),
        CardSection("Changes", tuple(map(_changed, changes))),
        _whole("Questions", _question_lines(request)),
        texts(
            "Tool", [f"{request.tool} of the MCP server {request.server}"] if request.tool else []
        ),
        texts("Paths", [each for each in request.locations if each not in changed]),
        _whole("Input", _input_lines(request)),
        texts("Unclear", request.doubts, Tone.BLOCKED),
        texts("It says", _words(request)),
        texts("Turn", [opened.turn]),
        texts("Policy", [opened.why]),
        texts("If unanswered" if request.questions else "If rejected", [_after_rejection(opened)]),
    )
    return Card(
        f"permission {opened.id}",
        f"{name}'s agent {permission_wish(request)}",
        by=name,
        since=opened.asked,
        sections=tuple(each for each in sections if each.rows),
        verdicts=tuple(_verdicts(opened)),
        changes=changes,
    )


def _verdicts(opened: OpenRequest) -> Iterator[CardVerdict]:
    def verdict(label: str, what: Verdict, message: str = "", *asks: str) -> CardVerdict:
        given = (("request", opened.id), ("verdict", what.value))
        said = (("message", message),) if message else ()
        return CardVerdict(label, ANSWER_PERMISSION, (*given, *said), asks)

    request = opened.request
    if request.questions:
        for choice in request.questions[0].choices[:_ANSWERS]:
            label = choice_text(choice)
            yield verdict(f"Answer: {label}", Verdict.REJECT, label)
        yield verdict("Answer in your own words", Verdict.REJECT, "", "message")
        yield verdict("Do not answer", Verdict.REJECT)
        return
    if request.option(ALLOW_ONCE) is not None:
        yield verdict("Allow once", Verdict.ALLOW)
    yield verdict("Reject", Verdict.REJECT)
    yield verdict("Reject, with a message", Verdict.REJECT, "", "message")


def _after_rejection(opened: OpenRequest) -> str:
    program = opened.program or "the agent"
    if opened.ends_turn:
        message = "" if opened.request.questions else ", with your message if you write one"
        then = f"{program} ends its turn; acp starts the turn again{message}"
    else:
        then = f"{program} continues without it"
    if opened.until is not None:
        then += f"; acp rejects the request at {clock(opened.until)}"
    return then


def _command_lines(request: PermissionRequest) -> list[str]:
    return lines_of((request.command or "").encode(errors="replace"))


def _words(request: PermissionRequest) -> list[str]:
    """What the program calls it, where that is not the command itself."""
    title = "" if request.title == request.command else request.title
    called = ": ".join(filter(None, (request.kind if title else "", title)))
    return [called, *clean(request.text).splitlines()]


def _input_lines(request: PermissionRequest) -> list[str]:
    """What the program would hand to its tool, but for what other sections show."""
    try:
        given = json.loads(request.input or "{}")
    except (ValueError, RecursionError):  # it was cut
        given = None
    if not isinstance(given, dict):
        return lines_of(request.input.encode(errors="replace"))
    seen = _IN_DIFFS if request.diffs else _IN_COMMAND if request.command is not None else ()
    left = {name: value for name, value in given.items() if name not in seen}
    return [
        safe(f"{name}: {json.dumps(value, ensure_ascii=False)}") for name, value in left.items()
    ]


def _question_lines(request: PermissionRequest) -> list[str]:
    """What the title and the verdicts do not say of the questions."""
    lines = []
    for number, question in enumerate(request.questions):
        is_title = number == 0 and clean_line(question.text, _SHORT) == question.text
        if not is_title:
            lines.append(safe(question.text))
        named = [(each.label, each.description) for each in question.choices]
        if number == 0 and len(named) <= _ANSWERS and not any(said for _, said in named):
            continue
        lines += [safe(f"- {': '.join(filter(None, each))}") for each in named]
    return lines


def _whole(title: str, lines: list[str]) -> CardSection:
    """A section of all lines: what is judged is never cut without a word about it."""
    rows = [Row((each,)) for each in lines[:_LINES]]
    left = len(lines) - len(rows)
    if left:
        rows.append(
            Row((f"… {left} more lines: do not allow what you cannot read",), tone=Tone.BLOCKED)
        )
    return CardSection(title, tuple(rows))


def _change(diff: FileDiff) -> Change:
    old, new = (text.encode(errors="replace") for text in (diff.old or "", diff.new))
    verb = "create" if diff.old is None else "replace"
    return Change(safe(diff.path) or "(no path)", verb, difference(old, new))


def _changed(change: Change) -> Row:
    return Row((change.path, counted(change.diff), change.verb), target=Target(change=change.path))


_DECIDING = frozenset({Intent.ANSWER, Intent.DECIDE, Intent.ACCEPT, Intent.REJECT})


def cards(
    collaboration: Collaboration, snapshot: Snapshot, now: datetime, offered: Offered | None = None
) -> tuple[Card, ...]:
    """What is to be decided, the most urgent first, each with the verdicts that are possible now.

    Args:
        collaboration: The collaboration; what its cards show is read anew.
        snapshot: Its latest Snapshot.
        now: The time.
        offered: Finds what can be done now. With it, there is also a card for what needs the
            person and can be mended, where no other card decides it.
    """
    asked = (permission_card(each) for each in answers.waiting(snapshot.key))
    possible = (_possible(card, snapshot) for card in collaboration.cards(now))
    decided = (*asked, *(card for card in possible if card.verdicts))
    return (*decided, *_fixes(snapshot, decided, offered)) if offered else decided


def _fixes(snapshot: Snapshot, decided: tuple[Card, ...], offered: Offered) -> Iterator[Card]:
    """A card for each matter that needs the person, can be ended, and is on no other card."""
    left = [
        each
        for each in snapshot.needs
        if each.verdicts and not any(card.is_about(each) for card in decided)
    ]
    if not left:
        return
    names = names_in(snapshot)
    labels = {each.name: each.label for each in offered()}
    for each in left:
        ways = tuple(
            CardVerdict(labels[verdict.act], verdict.act, verdict.given)
            for verdict in each.verdicts
            if verdict.act in labels
        )
        seen = texts("Seen" if each.certain else "Inferred from", each.evidence)
        todo = texts(
            "What to do", [sentence_case(each.instruction, names)] if each.instruction else []
        )
        if ways:
            yield Card(
                each.key,
                sentence_case(each.sentence, names),
                by=each.about.participant or "",
                since=each.since,
                sections=tuple(section for section in (seen, todo) if section.rows),
                verdicts=ways,
            )


def card_of(
    collaboration: Collaboration,
    snapshot: Snapshot,
    action: str,
    given: Mapping[str, str],
    now: datetime,
) -> Card | None:
    """The card on which an action is decided; None where it decides nothing.

    Args:
        collaboration, snapshot, now: As those of `cards`.
        action: The action's name.
        given: Values of its inputs, as far as they are known.
    """
    found = cards(collaboration, snapshot, now)
    exact = (card for card in found if card.verdict(action, given) is not None)
    instead = (card for card in found if action in card.replaces)
    return next(exact, None) or next(instead, None)


def is_over(action: Action, given: Mapping[str, str]) -> bool:
    """Whether what an action decides was decided or withdrawn meanwhile.

    It was where a value that leads to it is none of the choices that are left.

    Args:
        action: The action as it can be done now; what decides nothing, such as a stop, is never over.
        given: Values of its inputs, by name, as a need or a row has them.
    """
    if action.intent not in _DECIDING:
        return False
    chosen = (
        field for field in fields(action) if field.kind is Kind.CHOICE and field.name in given
    )
    return any(
        given[field.name] not in {*map(str, field.choices), *field.labels.values()}
        for field in chosen
        if field.choices or not action.offered
    )


def check(
    collaboration: Collaboration,
    snapshot: Snapshot,
    digest: str,
    action: str,
    now: datetime,
    offered: Offered | None = None,
) -> None:
    """Refuse a verdict on a matter that is not the one that the person judged.

    Args:
        collaboration, snapshot, now, offered: As those of `cards`.
        digest: That of the card that the person saw.
        action: The verdict's.

    Raises:
        Refused: no card with this digest has such a verdict now.
    """
    for card in cards(collaboration, snapshot, now, offered):
        if card.digest == digest and any(each.action == action for each in card.verdicts):
            return
    raise Refused("The facts have changed since you saw them; review them again")


def _possible(card: Card, snapshot: Snapshot) -> Card:
    verdicts = tuple(
        each for each in card.verdicts if not guard.blocking(snapshot.obstacles, each.action)
    )
    return card if len(verdicts) == len(card.verdicts) else replace(card, verdicts=verdicts)
