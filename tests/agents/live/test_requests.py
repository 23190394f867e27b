"""What a program asks for is read in the same way, whichever of the five programs it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents import codec
from acp_core.agents.live.requests import ALLOW_ONCE, LARGEST, PermissionRequest, parse
from tests.agents.live import messages

PROGRAMS = ("claude", "codex", "opencode", "gemini", "qwen")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each != "gemini"])
def test_a_command_is_read_from_what_is_run_and_not_from_the_title(program: str) -> None:
    asked = messages.shell(program, "rm -rf build")
    asked["params"]["toolCall"]["title"] = "ls"
    assert parse(asked).command == "rm -rf build"


def test_gemini_names_its_command_only_in_the_title_so_none_is_known() -> None:
    read = parse(messages.shell("gemini", "ls"))
    assert read.command is None and read.title == "ls"
    assert read.text == "[current working directory /project] (a step)"


@pytest.mark.parametrize("program", [each for each in PROGRAMS if each != "codex"])
def test_a_change_names_its_file_and_what_would_stand_in_it(program: str) -> None:
    read = parse(messages.edit(program, "/project/a.txt", "two", "three"))
    assert read.locations == ("/project/a.txt",)
    assert [(each.path, each.old, each.new) for each in read.diffs] == [
        ("/project/a.txt", "two", "three")
    ]


def test_a_path_that_only_the_input_names_counts_too() -> None:
    asked = messages.edit("claude", "/project/a.txt", None, "x")
    asked["params"]["toolCall"]["rawInput"]["file_path"] = "/home/user/.bashrc"
    assert set(parse(asked).locations) == {"/project/a.txt", "/home/user/.bashrc"}


@pytest.mark.parametrize("program", ["claude", "codex", "qwen"])
def test_a_tool_of_a_server_is_named(program: str) -> None:
    asked, announced = messages.tool(program, "acp", "append_event")
    read = parse(asked, announced)
    assert (read.server, read.tool) == ("acp", "append_event")


def test_an_unnamed_tool_of_a_server_is_no_other_call() -> None:
    asked, announced = messages.tool("codex", "acp", "append_event")
    assert parse(asked).server == "?"
    assert parse(asked, {**(announced or {}), "toolCallId": "another"}).server == "?"


def test_a_question_in_disguise_is_a_question_with_its_choices() -> None:
    (asked,) = parse(messages.question()).questions
    assert asked.text == "Which one?" and [each.label for each in asked.choices] == ["A", "B"]


def test_an_option_is_chosen_by_its_kind_the_first_in_order() -> None:
    asked = messages.shell("qwen", "ls")
    asked["params"]["options"][:0] = [
        {"optionId": "trap", "name": "Allow once", "kind": "allow_always"}
    ]
    asked["params"]["options"].append({"optionId": "mode", "name": "Yes", "kind": "allow_once"})
    option = parse(asked).option(ALLOW_ONCE)
    assert option is not None and option.id == "once"


def test_everything_that_is_shown_changes_the_digest() -> None:
    digest = parse(messages.edit("claude", "/project/a.txt", "two", "three")).digest
    for place, value in (
        (("content", 0, "newText"), "four"),
        (("locations", 0, "path"), "/project/b.txt"),
        (("rawInput", "file_path"), "/project/b.txt"),
        (("title",), "Edit"),
    ):
        asked = json.loads(json.dumps(messages.edit("claude", "/project/a.txt", "two", "three")))
        inside = asked["params"]["toolCall"]
        for step in place[:-1]:
            inside = inside[step]
        inside[place[-1]] = value
        assert parse(asked).digest != digest, place


def test_what_cannot_be_read_is_a_doubt() -> None:
    asked = messages.edit("claude", "/project/a.txt", "two", "three")
    asked["params"]["toolCall"]["locations"].append({"path": 7})
    assert parse(asked).doubts == ("locations[1].path is not a text",)
    asked["params"]["toolCall"]["locations"] = [{"path": "/project/a.txt"}] * 1001
    assert parse(asked).doubts == ("locations has more than 1000 entries",)


def test_a_request_of_any_size_can_be_written_down_and_says_that_it_was_cut() -> None:
    read = parse(messages.edit("claude", "/project/a.txt", None, "\N{PILE OF POO}" * LARGEST * 2))
    assert len(read.diffs[0].new) < LARGEST and read.doubts
    assert codec.decode(PermissionRequest, codec.encode(read)) == read
    assert len(codec.encode(read)) < 4 << 20


@pytest.mark.slow
@given(JSON, JSON, JSON)
def test_no_json_makes_reading_fail(call: object, options: object, announced: object) -> None:
    asked = {"id": 1, "params": {"toolCall": call, "options": options, "_meta": call}}
    read = parse(asked, announced if isinstance(announced, dict) else None)
    assert codec.decode(PermissionRequest, codec.encode(read)) == read
