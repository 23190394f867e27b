"""The first letter of a sentence, where it stands by itself and where it goes on."""

from __future__ import annotations

import pytest

from acp_core.model.format import continued, is_said, sentence_case

NAMES = ("reader", "A", "qa lead", "Nora")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the last line is incomplete", "The last line is incomplete"),
        ("invalid: primary deliverable missing", "Invalid: primary deliverable missing"),
        ("planning: active; waiting for you", "Planning: active; waiting for you"),
        ("reading is not possible", "Reading is not possible"),
        ("élan is missing", "Élan is missing"),
        ("No active turn", "No active turn"),
        ("", ""),
        ("12 tests fail", "12 tests fail"),
        ("→ nothing", "→ nothing"),
    ],
)
def test_a_sentence_begins_with_a_capital(text: str, shown: str) -> None:
    assert sentence_case(text, NAMES) == shown


@pytest.mark.parametrize(
    "text",
    [
        "reader must write the review",
        "reader's program ended without an event",
        "reader’s agent hit its limit",
        "reader: dispatch the next turn",
        "reader, reviewer: ready to dispatch",
        "qa lead has not answered",
        "events.jsonl has a gap",
        "protocol.json's phase is unknown",
        "agent-workspaces/a is missing",
        "task_egg: boil an egg",
        "v2 folders need it",
        "schemaVersion is unknown",
        "acp runs no agent here",
        "git refuses to read the repository",
        "`acp repair` mends it",
        "“Ready” is not checked",
        "ﬁles that begin with a sign without a capital of one letter",
    ],
)
def test_a_name_keeps_its_first_letter(text: str) -> None:
    assert sentence_case(text, NAMES) == text
    assert continued(text, NAMES) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The turn of pm waits", "the turn of pm waits"),
        ("A frozen deliverable was changed", "A frozen deliverable was changed"),  # A takes part
        ("Completed, but no tests ran", "completed, but no tests ran"),
        ("Nora must answer", "Nora must answer"),
        ("EP failed", "EP failed"),
        ("README.md is missing", "README.md is missing"),
        ("AgentXchain is not installed", "AgentXchain is not installed"),
        ("the log is broken", "the log is broken"),
        ("", ""),
    ],
)
def test_what_goes_on_after_other_words_has_no_capital(text: str, shown: str) -> None:
    assert continued(text, NAMES) == shown


def test_a_sentence_is_found_again_whatever_its_first_letter() -> None:
    assert is_said("The turn of pm waits", "planning — the turn of pm waits")
    assert not is_said("The turn of qa waits", "planning — the turn of pm waits")
