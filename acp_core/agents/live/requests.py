"""What a program asks permission for, and what it asks a person, as types, whichever program it is.

Five programs ask in five ways. A shell command stands in ``rawInput.command``, except with one
that puts it into the title alone; a change comes as differences, as places, or as both; a tool of
an MCP server is named in the request, in the call that was announced before, or nowhere; and one
disguises a question to the person as a request. Nothing here is taken from a title: programs write
there what they like. What cannot be read is a doubt, and a policy allows nothing that has one.
Questions to the person come as forms too (``elicitation/create``): a JSON Schema whose properties
are the questions.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

from acp_core.agents.progress import items, string, table
from acp_core.files.decode import MOST, Decoder, Odd, key
from acp_core.files.records import shallow
from acp_core.model.text import clean_line

ALLOW_ONCE, REJECT_ONCE = "allow_once", "reject_once"

LARGEST = 300_000

"""Characters that are read of a request, all its texts together."""

_LONGEST = 4_000  # characters of a name or a title

_MCP = "mcp__"  # how two of the programs begin the name of a server's tool

_PATHS = ("file_path", "filepath", "absolute_path", "notebook_path", "path")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Option:
    """One way to answer. ``kind`` is what it means; its name promises nothing."""

    id: str = key("optionId", default="")
    name: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A change that the program wants to make. ``old`` is None for a file that it would create."""

    path: str = ""
    old: str | None = None
    new: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer that a question offers."""

    label: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """A question to the person, disguised as a request for permission."""

    text: str = key("question", default="")
    header: str = ""
    choices: tuple[Choice, ...] = key("options", default=())
    several: bool = key("multiSelect", default=False)


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """One request for permission.

    Attributes:
        id: of the message; counts anew with every start of the program.
        session: the program's name for the session.
        tool_call: the program's name for the call.
        title, kind: what the program calls it. They never allow anything.
        command: the shell command; None where none is named.
        workdir: the folder in which the command would run; "" where it is not named.
        locations: every path that the call names, as it names them, those of ``diffs`` too.
        diffs: the changes that it would make.
        options: the ways to answer, in the program's order.
        questions: where it is none of that but a question, its questions.
        server, tool: of a call of an MCP server's tool; "" for other calls.
        input: all that the program would hand to the tool, as JSON; "" where it does not say.
        text: what the program says about the call.
        doubts: what of the request could not be read, or was too much.
    """

    id: str = ""
    session: str = ""
    tool_call: str = ""
    title: str = ""
    kind: str = ""
    command: str | None = None
    workdir: str = ""
    locations: tuple[str, ...] = ()
    diffs: tuple[FileDiff, ...] = ()
    options: tuple[Option, ...] = ()
    questions: tuple[AgentQuestion, ...] = ()
    server: str = ""
    tool: str = ""
    input: str = ""
    text: str = ""
    doubts: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with anything that a person is shown of the request."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def option(self, kind: str) -> Option | None:
        """The first option of a kind (one program's mode offers two that allow once)."""
        return next((each for each in self.options if each.kind == kind), None)


def parse(
    message: Mapping[str, Any], announced: Mapping[str, Any] | None = None
) -> PermissionRequest:
    """The request that a message holds.

    Args:
        message: of ``session/request_permission``, as it came.
        announced: the tool call as it was announced before, if it was: one program names an MCP
            server and its tool only there. One with another id is left aside.
    """
    params = _mapping(message.get("params"))
    odd: list[Odd] = []
    call = _decoder.decode(_Call, params.get("toolCall"), odd)
    before = _decoder.decode(_Call, dict(announced or {}))
    before = before if before.id == call.id else _Call()
    asked = _decoder.decode(_Asked, dict(params), odd)
    content = call.content or before.content
    tool = _mcp_tool(call, before, asked.approves_mcp)
    raw = call.raw if call.raw is not None else before.raw
    deep = () if shallow(raw) else ("rawInput is nested too deep",)
    request = PermissionRequest(
        id=str(message.get("id", "")),
        session=asked.session,
        tool_call=call.id,
        title=(call.title or before.title)[:_LONGEST],
        kind=(call.kind or before.kind)[:_LONGEST],
        command=call.command if call.command is not None else before.command,
        workdir=call.workdir or before.workdir,
        locations=tuple(dict.fromkeys([*call.paths(), *before.paths()])),
        diffs=tuple(FileDiff(each.path, each.old, each.new) for each in content if each.is_diff),
        options=asked.options,
        questions=call.asks(),
        server=tool.server,
        tool=tool.name,
        input="" if raw is None or deep else json.dumps(raw, ensure_ascii=False, indent=2),
        text="\n".join(each.text for each in content if each.text),
        doubts=tuple([f"{each.path or 'the call'} is not {each.expected}" for each in odd])
        + deep
        + _too_many(params),
    )
    return bounded(request)


@dataclass(frozen=True, slots=True)
class _Content:
    type: str = ""
    path: str = ""
    old: str | None = key("oldText", default=None)
    new: str = key("newText", default="")
    text: str = key("content.text", default="")

    @property
    def is_diff(self) -> bool:
        return self.type == "diff"


@dataclass(frozen=True, slots=True)
class _Location:
    path: str = ""


def _command(value: object) -> str | None:
    """A command as one text; older versions of one program gave its words."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return shlex.join(value)
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call, as any of the programs writes it."""

    id: str = key("toolCallId", default="")
    title: str = ""
    kind: str = ""
    command: str | None = key("rawInput.command", default=None, read=_command)
    workdir: str = key("rawInput.cwd", "rawInput.workdir", "rawInput.directory", default="")
    content: tuple[_Content, ...] = ()
    locations: tuple[_Location, ...] = ()
    raw: object = key("rawInput", default=None)
    server: str = key("rawInput.server", default="")
    tool: str = key("rawInput.tool", default="")
    is_mcp: bool = key("_meta.is_mcp_tool_call", default=False)
    named_server: str = key("_meta.claudeCode.mcpServer.name", default="")
    tool_name: str = key("_meta.claudeCode.toolName", "_meta.toolName", default="")
    interaction: str = key("_meta.qwenInteractionKind", default="")
    questions: tuple[AgentQuestion, ...] = key("_meta.qwenQuestions", default=())

    def paths(self) -> Iterable[str]:
        """Every path that it names, wherever it stands."""
        yield from (each.path for each in self.locations)
        yield from (each.path for each in self.content if each.is_diff)
        values = (_mapping(self.raw).get(name) for name in _PATHS)
        yield from (value for value in values if isinstance(value, str))

    def asks(self) -> tuple[AgentQuestion, ...]:
        if self.interaction == "user_question" and not self.questions:
            return (AgentQuestion(self.title),)
        return self.questions


@dataclass(frozen=True, slots=True)
class _Asked:
    """What stands beside the call."""

    session: str = key("sessionId", default="")
    options: tuple[Option, ...] = ()
    approves_mcp: bool = key("_meta.is_mcp_tool_approval", default=False)


_decoder = Decoder()


class _Tool(NamedTuple):
    server: str = ""
    name: str = ""


def _mcp_tool(call: _Call, before: _Call, approval: bool) -> _Tool:
    """The MCP server and its tool that a call is for; "?" for one that is not named."""
    for each in (call, before):
        if each.server and (approval or each.is_mcp):
            return _Tool(each.server, each.tool)
        if each.tool_name.startswith(_MCP):
            server, _, tool = each.tool_name.removeprefix(_MCP).partition("__")
            return _Tool(each.named_server or server, tool)
    return _Tool("?", "?") if approval else _Tool()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _too_many(params: Mapping[str, Any]) -> tuple[str, ...]:
    call = _mapping(params.get("toolCall"))
    return tuple(
        f"{name} has more than {MOST} entries"
        for name in ("content", "locations")
        if isinstance(call.get(name), list) and len(call[name]) > MOST
    )


def bounded(request: PermissionRequest) -> PermissionRequest:
    """A request that is never too large to be written down and shown."""
    room = LARGEST

    def cut(value: _T) -> _T:
        nonlocal room
        made: Any = value
        if isinstance(value, str):
            made, room = value[: max(0, room)], room - len(value)
        elif isinstance(value, tuple):
            made = tuple(cut(each) for each in value)
        elif is_dataclass(value) and not isinstance(value, type):
            made = replace(
                value, **{each.name: cut(getattr(value, each.name)) for each in fields(value)}
            )
        return made  # type: ignore[no-any-return]

    made = cut(request)
    if room >= 0:
        return request
    return replace(made, doubts=(*made.doubts[:MOST], f"it is longer than {LARGEST:,} characters"))


FORM = "elicitation/create"

"""The method by which an agent has a person fill in a form."""

CANCELLED: dict[str, Any] = {"action": "cancel"}

"""The answer to a form for which nobody waits any more."""

NOT_ALLOWED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}

"""The answer to a request for permission for which nobody waits any more."""

MOST_QUESTIONS = 20

"""Questions of one form; a longer one is declined."""

_LABEL = 100  # characters of a choice as it is shown

_SEVERAL = ", "  # stands between several choices in one answer

_OWN = "_custom"  # how one program names the field for a person's own words beside a choice

_YES_NO = (Choice("Yes"), Choice("No"))


@dataclass(frozen=True, slots=True)
class FormField:
    """One property of a form.

    Attributes:
        name: of the property.
        question: what a person is asked.
        kind: the JSON type of its value.
        values: what stands in the form for each choice, by the choice as it is shown.
        own: the property that takes a person's own words instead; "" where there is none.
        required: the form is worth nothing without it.
    """

    name: str
    question: AgentQuestion
    kind: str = "string"
    values: Mapping[str, object] = field(default_factory=dict)
    own: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A form that an agent has a person fill in: as a request with questions, and its properties."""

    request: PermissionRequest
    fields: tuple[FormField, ...] = ()

    def filled_in(self, said: Sequence[str]) -> dict[str, Any]:
        """The answer to the agent: the form's content; declined where it cannot be filled in.

        Args:
            said: what was answered to each question, "" or nothing where it was not.
        """
        content: dict[str, object] = {}
        for number, each in enumerate(self.fields):
            answer = said[number].strip() if number < len(said) else ""
            found = _content(each, answer) if answer else {}
            if found is None or (each.required and not found):
                return {"action": "decline"}
            content |= found
        return {"action": "accept", "content": content} if content else {"action": "decline"}


def choice_text(choice: Choice) -> str:
    """A choice as a person sees and answers it."""
    return clean_line(choice.label, _LABEL)


def read_form(message: Mapping[str, Any]) -> Form:
    """The form that a message holds; one without fields cannot be filled in.

    Args:
        message: of ``elicitation/create``, as it came.
    """
    params = table(message.get("params"))
    schema = table(params.get("requestedSchema"))
    properties = {str(name): table(each) for name, each in table(schema.get("properties")).items()}
    own = {f"{name}{_OWN}": name for name in properties if f"{name}{_OWN}" in properties}
    asked = {name: each for name, each in properties.items() if name not in own}
    required = {string(each) for each in items(schema.get("required"))}
    lead = string(params.get("message"))
    fields: tuple[FormField, ...] = ()
    if params.get("mode", "form") == "form" and len(asked) <= MOST_QUESTIONS:
        fields = tuple(
            _field(name, each, lead, len(asked) == 1, name in required, own)
            for name, each in asked.items()
        )
    request = PermissionRequest(
        id=str(message.get("id", "")),
        session=string(params.get("sessionId")),
        tool_call=string(params.get("toolCallId")),
        title=lead,
        questions=tuple(each.question for each in fields),
    )
    return Form(bounded(request), fields)


def permitted(request: PermissionRequest, said: Sequence[str]) -> dict[str, Any]:
    """The answer to a request for permission that is a question in disguise.

    It is never allowed without an answer, which the program would take for one, nor where it is
    about more than questions: whoever answers these allows nothing else.

    Args:
        request: what was asked.
        said: what was answered to each question, "" or nothing where it was not.
    """
    answers = {
        str(number): _as_written(request.questions[number], answer.strip())
        for number, answer in enumerate(said)
        if answer.strip()
    }
    more = request.command is not None or request.diffs or request.locations or request.tool
    if more:
        answers = {}
    option = request.option(ALLOW_ONCE if answers else REJECT_ONCE)
    if option is None:
        return NOT_ALLOWED
    outcome: dict[str, Any] = {"outcome": {"outcome": "selected", "optionId": option.id}}
    return {**outcome, "answers": answers} if answers else outcome


def one_by_one(request: PermissionRequest) -> list[PermissionRequest]:
    """A request for each question: a person answers one at a time."""
    return [replace(request, questions=(each,)) for each in request.questions[:MOST_QUESTIONS]]


def _field(
    name: str,
    about: Mapping[str, Any],
    lead: str,
    alone: bool,
    required: bool,
    own: Mapping[str, str],
) -> FormField:
    kind = string(about.get("type")) or "string"
    several = kind == "array"
    offered = table(about.get("items")) if several else about
    choices = [
        (Choice(string(each.get("title")) or str(each.get("const")), string(each.get("description"))),
         each.get("const"))
        for each in map(table, items(offered.get("oneOf")) or items(offered.get("anyOf")))
    ]  # fmt: skip
    names = items(offered.get("enumNames"))
    for number, value in enumerate(items(offered.get("enum"))):
        label = string(names[number]) if number < len(names) else ""
        choices.append((Choice(label or str(value)), value))
    if kind == "boolean":
        choices = list(zip(_YES_NO, (True, False), strict=True))
    title, description = string(about.get("title")), string(about.get("description"))
    text = lead if alone and lead else description or title or name
    header = title if title != text else ""
    return FormField(
        name,
        AgentQuestion(text, header, tuple(choice for choice, _ in choices), several),
        kind,
        {choice_text(choice): value for choice, value in reversed(choices)},
        f"{name}{_OWN}" if f"{name}{_OWN}" in own else "",
        required,
    )


def _content(about: FormField, answer: str) -> dict[str, object] | None:
    """What stands in the form for an answer; None where it is none that the form takes."""
    if about.kind == "array":
        chosen = [about.values.get(each) for each in answer.split(_SEVERAL)]
        if None not in chosen:
            return {about.name: chosen}
        return {about.own: answer} if about.own else None
    if about.values:
        if answer in about.values:
            return {about.name: about.values[answer]}
        return {about.own: answer} if about.own else None
    if about.kind not in ("integer", "number"):
        return {about.name: answer} if about.kind == "string" else None
    try:
        return {about.name: int(answer) if about.kind == "integer" else float(answer)}
    except ValueError:
        return None


def _as_written(question: AgentQuestion, answer: str) -> str:
    """An answer as the program wrote the choice, where it is one."""
    return next((each.label for each in question.choices if choice_text(each) == answer), answer)


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """A command of acp that a participant may run for itself.

    Attributes:
        read: makes values of the words after the command's name; None where they are not plain.
        files: names of the values that are paths of files which the command reads.
    """

    read: Callable[[Sequence[str]], SimpleNamespace | None]
    files: tuple[str, ...] = ()
