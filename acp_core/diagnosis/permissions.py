"""Requests for permission that wait for a person: a need each, and the card that decides it.

All that a program wrote is made safe to show here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.requests import ALLOW_ONCE, FileDiff, PermissionRequest, choice_text
from acp_core.loops.acts.names import ANSWER_PERMISSION, STOP_LOOP
from acp_core.model import Cause, Change, Row, Target, Tone
from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.format import clock, dated
from acp_core.model.text import clean, clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.kit.cards import MOST, counted, texts
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.wording import difference, lines_of, safe

CODE = "B17"
_IN_COMMAND = frozenset({"command", "description", "cwd"})
_IN_DIFFS = frozenset({"file_path", "filepath", "content", "old_string", "new_string", "diff"})
_SHORT = 100  # characters of a command in a headline
_ANSWERS = 7  # choices of a question that have a key
_LINES = 40  # lines of a command or an input on the card itself; the rest is opened


def causes(waiting: Iterable[OpenRequest]) -> Iterator[Cause]:
    """A cause for each request: its program goes on only when it is answered."""
    for each in waiting:
        name = safe_id(each.participant)
        until = (
            f"acp rejects it at {dated(each.until)}" if each.until else "it waits until you answer"
        )
        yield Cause(
            CODE,
            f"{name}'s agent {wish(each.request)}",
            advice="answer it",
            evidence=(
                f"asked at {dated(each.asked)}; {until}",
                f"policy: {safe(each.why)}",
                *(f"command: {safe(line)}" for line in _command_lines(each.request)[:MOST]),
                *(f"path: {safe(path)}" for path in each.request.locations[:MOST]),
            ),
            remedy=ANSWER_PERMISSION,
            given=(("request", each.id),),
            others=(STOP_LOOP,),
            participant=name,
            since=each.asked,
            key=f"{CODE}:{name}:{each.id}",
            root=True,
        )


def wish(request: PermissionRequest) -> str:
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


def card(opened: OpenRequest) -> Card:
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
        f"{name}'s agent {wish(request)}",
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
