"""Questions of agents: forms and requests in disguise are asked one by one, and answered in their shape."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents.live import answers
from acp_core.agents.live.policy import Decision, Gate, Judged
from acp_core.agents.live.requests import MOST_QUESTIONS, choice_text, parse, permitted, read_form
from acp_core.agents.live.turn import Order
from acp_core.model.clock import utc_now
from acp_core.person.permissions import Verdict
from tests.agents.live import messages

STORE = {"type": "string", "title": "Choice", "description": "Which store?", "oneOf": [{"const": "git", "title": "Git"}, {"const": "pg", "title": "PostgreSQL"}]}  # fmt: skip
OWN = {"type": "string", "title": "Other"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


def form(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """How an agent has a form filled in."""
    schema = {"type": "object", "properties": properties, **more}
    params = {"mode": "form", "sessionId": "s", "message": "Please answer.", "requestedSchema": schema}  # fmt: skip
    return {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": params}


def filled_in(properties: dict[str, Any], *said: str, **more: Any) -> dict[str, Any]:
    return read_form(form(properties, **more)).filled_in(said)


def test_a_form_of_one_question_is_asked_in_the_words_of_its_message() -> None:
    asked = form({"question_0": STORE, "question_0_custom": OWN})
    asked["params"]["message"] = "Where do we keep it?"
    [question] = read_form(asked).request.questions
    assert (question.text, question.header) == ("Where do we keep it?", "Choice")
    assert [each.label for each in question.choices] == ["Git", "PostgreSQL"]


@pytest.mark.parametrize(
    ("properties", "said", "content"),
    [
        ({"a": STORE}, ["PostgreSQL"], {"a": "pg"}),
        ({"a": STORE, "a_custom": OWN}, ["on paper"], {"a_custom": "on paper"}),
        ({"a": STORE}, ["on paper"], None),
        ({"a": STORE, "b": STORE}, ["", "Git"], {"b": "git"}),
        ({"a": STORE}, [""], None),
        ({"a": {"type": "array", "items": {"anyOf": STORE["oneOf"]}}}, ["Git, PostgreSQL"], {"a": ["git", "pg"]}),
        ({"a": {"type": "array", "items": {"enum": ["x", "y"]}}}, ["x"], {"a": ["x"]}),
        ({"a": {"type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"]}}, ["Why"], {"a": "y"}),
        ({"a": {"type": "boolean"}}, ["No"], {"a": False}),
        ({"a": {"type": "integer"}}, ["12"], {"a": 12}),
        ({"a": {"type": "integer"}}, ["twelve"], None),
        ({"a": {"type": "number"}}, ["1.5"], {"a": 1.5}),
        ({"a": {"type": "string"}}, ["As you like"], {"a": "As you like"}),
        ({"a": {"type": "object"}}, ["{}"], None),
    ],
)  # fmt: skip
def test_an_answer_becomes_what_the_form_takes_or_the_form_is_declined(
    properties: dict[str, Any], said: list[str], content: dict[str, Any] | None
) -> None:
    answer = filled_in(properties, *said)
    wanted = {"action": "decline"} if content is None else {"action": "accept", "content": content}
    assert answer == wanted


def test_a_form_without_a_field_that_it_needs_is_declined() -> None:
    two = {"a": STORE, "b": STORE}
    assert filled_in(two, "Git", required=["b"]) == {"action": "decline"}
    assert filled_in(two, "Git", "Git", required=["b"])["content"] == {"a": "git", "b": "git"}


def test_a_form_that_is_none_or_too_long_asks_nothing_and_is_declined() -> None:
    link = form({"a": STORE})
    link["params"] |= {"mode": "url", "url": "https://example.org"}
    long = form({str(number): STORE for number in range(MOST_QUESTIONS + 1)})
    for each in (link, long, form({}), {"id": 1, "params": None}):
        found = read_form(each)
        assert found.request.questions == () and found.filled_in(["Git"]) == {"action": "decline"}


@pytest.mark.slow
@given(JSON, JSON, st.text())
def test_no_form_makes_reading_or_answering_fail(
    properties: object, more: object, said: str
) -> None:
    schema = {"properties": properties, "required": more, "items": more}
    asked = {"id": 1, "params": {"requestedSchema": schema, "message": more, "sessionId": more}}
    found = read_form(asked)
    answer = found.filled_in([said] * len(found.fields))
    assert answer["action"] in ("accept", "decline") and json.dumps(answer)


class Asked:
    """A gate that has a person asked, and what it noted."""

    def __init__(self, verdict: Verdict = Verdict.ASK) -> None:
        self.notes: list[dict[str, Any]] = []
        order = Order("/place", (), "", folder="/checkout", participant="ann")
        judged = Judged(Decision(verdict, "the policy says so"))
        self.gate = Gate(order, lambda _: judged, lambda **note: self.notes.append(note))

    def refused(self) -> list[str]:
        return [each["refused"] for each in self.notes if "refused" in each]


async def answer_each(
    coming: asyncio.Task[dict[str, Any]], *said: str, by: Callable[[answers.OpenRequest], str]
) -> list[str]:
    """Answer one question after the other; the questions as they came."""
    seen: list[str] = []
    for each in said:
        while not answers.waiting() and not coming.done():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        [opened] = answers.waiting()
        seen.append(opened.request.questions[0].text)
        assert len(opened.request.questions) == 1
        answers.answer(opened, Verdict.REJECT, by(opened), utc_now(), each)
        while answers.is_published(opened):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return seen


def states() -> list[tuple[str, str, str]]:
    lines = (answers.root() / "answered.jsonl").read_text().splitlines()
    return [(each["state"], each["by"], each["question"]) for each in map(json.loads, lines)]


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))


async def test_a_form_is_answered_by_a_person_question_by_question() -> None:
    asked = Asked()
    more = {**STORE, "description": "And the backup?"}
    filling = asyncio.create_task(asked.gate.fill_in(form({"a": STORE, "b": more, "c": STORE})))
    seen = await answer_each(filling, "Git", "", "PostgreSQL", by=lambda _: "ann")
    assert seen == ["Which store?", "And the backup?", "Which store?"]
    assert await filling == {"action": "accept", "content": {"a": "git", "c": "pg"}}
    assert states() == [
        ("answered", "ann", "Which store?"),
        ("reject", "ann", "And the backup?"),
        ("answered", "ann", "Which store?"),
    ]
    assert asked.refused() == ["And the backup? (no answer was given)"]
    assert {"ann answered: Git"} <= {each.get("note") for each in asked.notes}


async def test_a_question_in_disguise_gets_its_answer_beside_the_option() -> None:
    asked = Asked()
    answering = asyncio.create_task(asked.gate.answer(messages.question(), None))
    await answer_each(answering, "B", by=lambda _: "ann")
    chosen = {"outcome": {"outcome": "selected", "optionId": "once"}, "answers": {"0": "B"}}
    assert await answering == chosen
    answering = asyncio.create_task(asked.gate.answer(messages.question(), None))
    await answer_each(answering, "", by=lambda _: "ann")
    assert await answering == {"outcome": {"outcome": "selected", "optionId": "no"}}


async def test_what_nobody_answers_in_time_is_declined_and_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked()
    late = answers.Answer("", Verdict.REJECT, answers.ACP, utc_now(), "no person answered")
    monkeypatch.setattr(answers, "taken", lambda opened, now: late)
    assert await asked.gate.fill_in(form({"a": STORE, "b": STORE})) == {"action": "decline"}
    assert states() == [("reject", "acp", "Which store?")]  # the second one is not asked any more
    assert asked.refused() == ["Which store? (no person answered)"]


async def test_a_policy_that_rejects_everything_asks_nobody() -> None:
    asked = Asked(Verdict.REJECT)
    assert await asked.gate.fill_in(form({"a": STORE})) == {"action": "decline"}
    answer = await asked.gate.answer(messages.question(), None)
    assert answer == {"outcome": {"outcome": "selected", "optionId": "no"}}
    assert asked.refused() == [
        "Please answer. (the policy says so)",
        "Which one? (the policy says so)",
    ]


async def test_a_form_that_nobody_waits_for_any_more_is_cancelled() -> None:
    asked = Asked()
    filling = asyncio.create_task(asked.gate.fill_in(form({"a": STORE})))
    while not answers.waiting():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    asked.gate.withdraw()
    assert await filling == {"action": "cancel"}
    assert answers.waiting() == () and states() == [("withdrawn", "acp", "Please answer.")]


@pytest.mark.parametrize(
    "more",
    [
        {"rawInput": {"command": "rm -rf build"}},
        {"locations": [{"path": "/project/a.txt"}]},
        {"content": [{"type": "diff", "path": "/project/a.txt", "newText": ""}]},
    ],
)
def test_who_answers_a_question_allows_nothing_else(more: dict[str, Any]) -> None:
    asked = messages.question()
    asked["params"]["toolCall"] |= more
    answer = permitted(parse(asked), ["A"])
    assert answer == {"outcome": {"outcome": "selected", "optionId": "no"}}


def test_a_choice_is_answered_as_it_is_shown_and_told_as_it_was_written() -> None:
    asked = messages.question()
    label = "git\x1b[31m " + "x" * 200
    asked["params"]["toolCall"]["_meta"]["qwenQuestions"][0]["options"][0]["label"] = label
    request = parse(asked)
    said = choice_text(request.questions[0].choices[0])
    assert "\x1b" not in said and len(said) <= 100
    assert permitted(request, [said])["answers"] == {"0": label}
