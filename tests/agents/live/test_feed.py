"""What happens in a live turn, in its order, while its journal grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import output as agents_output
from acp_core.agents.live.updates import AGENT, RUNNER, Journal
from acp_core.agents.output import CALL, NOTE, PERSON, TEXT, Feed, entries

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"


class Writer:
    """Writes a journal as the runner does."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "00001.out"
        self._journal = Journal(self.path)
        self._now = 1_700_000_000.0

    def update(self, kind: str, /, **fields: Any) -> None:
        update = {"sessionUpdate": kind, **fields}
        self.write(AGENT, {"method": "session/update", "params": {"update": update}})

    def say(self, text: str, message: str = "m1") -> None:
        self.update(
            "agent_message_chunk", content={"type": "text", "text": text}, messageId=message
        )

    def write(self, direction: str, message: dict[str, Any]) -> None:
        self._now += 1
        self._journal.write(direction, message, self._now)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path)


def seen(picture: agents_output.Picture | None) -> list[tuple[int, str, str, str]]:
    assert picture is not None
    return [(each.number, each.kind, each.text, each.status) for each in picture.entries]


def test_text_grows_in_its_place_and_calls_change_where_they_stand(writer: Writer) -> None:
    journal = Feed(writer.path)
    assert journal.read() is None
    writer.say("I read ")
    assert seen(journal.read()) == [(1, TEXT, "I read ", "")]
    writer.say("the proposal.")
    writer.update("tool_call", toolCallId="c1", kind="execute", rawInput={"command": "make test"})
    assert seen(journal.read()) == [
        (1, TEXT, "I read the proposal.", ""),
        (2, CALL, "execute: make test", "pending"),
    ]
    writer.say("And now the review.", "m2")
    output = [{"type": "content", "content": {"type": "text", "text": "12 passed"}}]
    writer.update("tool_call_update", toolCallId="c1", status="completed", content=output)
    picture = journal.read()
    assert seen(picture) == [
        (2, CALL, "execute: make test", "completed"),
        (3, TEXT, "And now the review.", ""),
    ]
    assert picture is not None and picture.entries[0].output == ("12 passed",)
    assert journal.read() is None


def test_what_a_person_and_acp_say_stands_between(writer: Writer) -> None:
    writer.say("I begin.")
    writer.write(RUNNER, {"message": "Look at question 3", "by": "ann"})
    writer.write(RUNNER, {"refused": "rm -rf (no)"})
    writer.say("I look.")
    assert [(each.kind, each.text) for each in entries(writer.path)] == [
        (TEXT, "I begin."),
        (PERSON, "Look at question 3"),
        (NOTE, "not allowed: rm -rf (no)"),
        (TEXT, "I look."),
    ]


def test_hostile_texts_are_plain_and_secrets_do_not_show(writer: Writer) -> None:
    evil = f"\x1b]0;owned\x07[red]\u202e {SECRET}"
    writer.say(evil)
    writer.update("tool_call", toolCallId="c1", title=evil, kind=evil, status=evil)
    writer.update("tool_call_update", toolCallId="c1", rawOutput=evil)
    writer.update("plan", entries=[{"content": evil, "status": evil}])
    picture = Feed(writer.path).read()
    assert picture is not None
    call = picture.entries[1]
    shown = "".join([picture.entries[0].text, call.text, call.status, *call.output,
                     picture.plan[0].content, picture.plan[0].status])  # fmt: skip
    assert "[red]" in shown and shown.isprintable() and SECRET not in shown


def test_only_the_newest_entries_are_remembered(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_output, "MOST", 3)
    for number in range(9):
        writer.update("tool_call", toolCallId=f"c{number}", title=f"call {number}")
    found = entries(writer.path)
    assert [each.text for each in found] == [f"tool: call {number}" for number in (6, 7, 8)]


def test_a_journal_that_is_gone_or_damaged_tells_nothing(tmp_path: Path) -> None:
    assert entries(tmp_path / "gone.out") == ()
    damaged = tmp_path / "damaged.out"
    damaged.write_bytes(b'[1]\n{"at":"x","direction":7,"message":9}\nnot json\n\xff\n')
    assert entries(damaged) == ()
