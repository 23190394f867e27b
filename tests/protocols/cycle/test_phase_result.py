"""What an agent says at its end is understood in every form that agents give it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.protocols.cycle.read.progress import PhaseResult, Ratio, parse_result

PARTIAL = """\
PHASE_RESULT:
- phase: cd
- status: partial
- files_written: [implementation.md, changes.log]
- summary: 2 tasks done, 1 blocker: the limit
- tests_passing: 17/20
- blockers:
  - FR-003 unclear
  - RA: which delimiter?
    comma or semicolon
- issues: []

PHASE_DETAILS:
first pass
second line
"""


def parsed(output: str) -> PhaseResult:
    found = parse_result(output)
    assert found is not None
    return found


def test_a_result_is_taken_apart_with_its_lists_and_numbers() -> None:
    found = parsed(PARTIAL)
    assert (found.phase, found.status, found.blocks) == ("cd", "partial", 1)
    assert found.summary == "2 tasks done, 1 blocker: the limit"
    assert found.items("files_written") == ["implementation.md", "changes.log"]
    assert found.fields["tests_passing"] == Ratio(17, 20)
    assert found.number("tests_passing") == 85
    assert found.items("blockers") == ["FR-003 unclear", "RA: which delimiter? comma or semicolon"]
    assert found.items("issues") == []
    assert found.details == "first pass\nsecond line"
    assert found.problems("cd") == []
    assert found.plain()["tests_passing"] == "17/20"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("92%", 92.0),
        ("92.5 %", 92.5),
        ("17/20", Ratio(17, 20)),
        ("3", 3),
        ("-2", -2),
        ("0.5", 0.5),
        ("true", True),
        ("False", False),
        ("1.0.0", "1.0.0"),
        ("[]", []),
        ('["FR-003", "a, b", plain]', ["FR-003", "a, b", "plain"]),
        ("[f(a, b), it's here]", ["f(a, b)", "it's here"]),
        ("`src/a.py`", "src/a.py"),
        ("it's", "it's"),
        ("2026-03-02T10:00:00+08:00", "2026-03-02T10:00:00+08:00"),
    ],
)
def test_values_mean_what_they_say(said: str, meant: object) -> None:
    assert parsed(f"PHASE_RESULT:\n- x: {said}\n").fields["x"] == meant


@pytest.mark.parametrize(
    "output",
    [
        "PHASE_RESULT:\r\n- phase: vas\r\n- status: success\r\n- coverage: 88%\r\n\r\nbye\r\n",
        "Done.\n\n```\nPHASE_RESULT:\n- phase: vas\n- status: success\n- coverage: 88%\n```\nBye",
        "**PHASE_RESULT:**\n- **phase**: vas\n- **status:** success\n- **coverage**: `88%`",
        "## PHASE_RESULT:\n\n* phase: vas\n* status: success\n* coverage: 88%",
        "PHASE_RESULT:\n```\nphase: vas\nstatus: success\ncoverage: 88%\n```",
        "PHASE_RESULT:\n  - phase: VAS\n  - status: Success\n  - coverage: 88%",
        "> PHASE_RESULT:\n> - phase: vas\n> - status: success\n> - coverage: 88%",
    ],
)
def test_the_form_around_it_does_not_matter(output: str) -> None:
    found = parsed(output)
    assert (found.phase, found.status, found.number("coverage")) == ("vas", "success", 88.0)


def test_the_last_of_several_blocks_counts_and_their_number_is_told() -> None:
    first = "PHASE_RESULT:\n- phase: cd\n- status: failed\n- summary: compile error\n"
    found = parsed(first + "\nretried\n\nPHASE_RESULT:\n- phase: cd\n- status: success\n")
    assert (found.status, found.blocks) == ("success", 2)
    assert "2 blocks, the last one counts" in found.problems("cd")
    assert "compile error" not in found.summary


def test_a_template_that_is_repeated_is_no_result() -> None:
    template = "PHASE_RESULT:\n- phase: ra\n- status: success | failed | partial\n"
    assert parse_result(template) is None
    assert parsed(PARTIAL + "\n" + template).status == "partial"


@pytest.mark.parametrize("output", ["", "I finished, all good.", "PHASE_RESULT: later", "\n" * 99])
def test_without_a_block_there_is_no_result(output: str) -> None:
    assert parse_result(output) is None


def test_what_is_wrong_with_a_result_is_said() -> None:
    found = parsed("PHASE_RESULT:\n- phase: qa\n- status: done\n")
    assert found.problems("cd") == [
        "phase is 'qa', not 'cd'",
        "status 'done' is not one of success, failed, partial",
        "missing: files_written, summary, issues",
    ]
    failed = parsed("PHASE_RESULT:\n- phase: cd\n- status: failed\n- issues: none\n")
    assert "failed without issues or blockers" in failed.problems("cd")


WORD = st.from_regex(r"[a-z][a-z ]{0,12}[a-z]", fullmatch=True).filter(
    lambda word: word not in ("none", "nothing", "true", "false", "null", "no")
)
NEWLINE = st.sampled_from(["\n", "\r\n"])


@given(
    issues=st.lists(WORD, max_size=5),
    blockers=st.lists(WORD, max_size=5),
    part=st.integers(0, 10**6),
    whole=st.integers(0, 10**6),
    rate=st.integers(0, 100),
    before=st.text(max_size=40).filter(lambda text: "PHASE_" not in text),
    newline=NEWLINE,
    fence=st.booleans(),
)
def test_whatever_is_written_is_read_again(
    issues: list[str],
    blockers: list[str],
    part: int,
    whole: int,
    rate: int,
    before: str,
    newline: str,
    fence: bool,
) -> None:
    lines = ["PHASE_RESULT:", "- phase: cd", "- status: success", "- blockers:"]
    lines += [f"  - {each}" for each in blockers]
    lines += [f"- issues: [{', '.join(issues)}]", f"- tests_passing: {part}/{whole}"]
    lines += [f"- coverage: {rate}%"]
    body = ["```", *lines, "```"] if fence else [*lines, ""]
    found = parsed(newline.join([before, *body]))
    assert found.items("issues") == issues
    assert found.items("blockers") == blockers
    assert found.fields["tests_passing"] == Ratio(part, whole)
    assert found.number("coverage") == rate


@settings(max_examples=100)
@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(PARTIAL.splitlines()))))
def test_no_output_makes_it_fail(lines: list[str]) -> None:
    found = parse_result("\n".join(lines))
    if found:
        assert found.blocks >= 1
        found.problems("cd")
        found.plain()
        for key in found.fields:
            found.items(key), found.number(key), found.word(key)


def test_a_phase_that_is_none_is_said_also_where_nobody_asks_whose_it_is() -> None:
    found = parse_result("PHASE_RESULT:\n- phase: qa\n- status: success\n")
    assert found is not None
    assert found.problems()[0] == "phase 'qa' is not one of ra, ep, cd, vas"
    assert found.problems("cd")[0] == "phase is 'qa', not 'cd'"
