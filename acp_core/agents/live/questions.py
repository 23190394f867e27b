"""Questions of an agent to the person, in two shapes: a form to be filled in, and a request in disguise.

The protocol has forms (``elicitation/create``): a JSON Schema whose properties are questions. One
program asks for permission instead, and takes the answers beside the option that is chosen. A
person answers each question by itself, by one of its choices or in their own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acp_core.agents.live.requests import (
    ALLOW_ONCE,
    REJECT_ONCE,
    AgentQuestion,
    Choice,
    PermissionRequest,
    bounded,
)
from acp_core.agents.streams.progress import items, string, table
from acp_core.model.text import clean_line

FORM = "elicitation/create"
"""The method by which an agent has a person fill in a form."""
CANCELLED: dict[str, Any] = {"action": "cancel"}
"""The answer to a form for which nobody waits any more."""
NOT_ALLOWED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
"""The answer to a request for permission for which nobody waits any more."""
MOST = 20
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
    if params.get("mode", "form") == "form" and len(asked) <= MOST:
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
    return [replace(request, questions=(each,)) for each in request.questions[:MOST]]


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
