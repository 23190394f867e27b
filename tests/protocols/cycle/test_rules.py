"""Each numbered rule speaks where it should, and is silent in a cycle that is nearly the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model import Severity
from acp_core.protocols.cycle.rules import checks, of_state, preparation
from acp_core.protocols.cycle.rules.checks import CODES, UNSEEN
from tests.protocols.cycle import cases_files, cases_reports, cases_state
from tests.protocols.cycle.making import HOME, PROGRESS, codes, cycle, read, state, task, write
from tests.protocols.cycle.situations import Situation, on

SPEAK = [*cases_state.SPEAK, *cases_files.SPEAK, *cases_reports.SPEAK]
SILENT = [*cases_state.SILENT, *cases_files.SILENT, *cases_reports.SILENT]

# Every rule with its severities: error, warning, advice.
RULES = {
    "A01": "E", "A02": "E", "A03": "E", "A04": "W", "A05": "E", "A06": "E", "A07": "W",
    "A08": "EA", "A09": "EW", "A10": "EW", "A10z": "A", "A11": "W", "A12": "E", "A13": "A",
    "A14": "WE", "A15": "A", "A16": "W", "A17": "WE", "A18": "W", "A19": "W",
    "A20": "W", "A21": "EW", "A22": "W", "A23": "EW", "A24": "WA",
    "A30": "WA", "A31": "WE", "A32": "W", "A33": "W", "A34": "E", "A35": "WA", "A36": "W",
    "A37": "W", "A38": "W", "A39": "A",
    "A40": "WA", "A41": "AE", "A42": "W", "A43": "WA", "A44": "A", "A45": "A", "A46": "W",
    "A47": "W", "A48": "E", "A49": "E", "A49b": "W",
    "A50": "E", "A51": "W", "A52": "E", "A53": "W", "A54": "W", "A55": "AW", "A56": "A",
    "A60": "E", "A61": "W", "A62": "A",
    "A70": "E", "A71": "E", "A72": "E", "A73": "W", "A74": "W", "A75": "W", "A76": "A", "A77": "W",
    "A80": "WA", "A81": "AW",
    "A90": "W", "A91": "W", "A92": "W", "A93": "W", "A94": "W", "A95": "W", "A96": "EW",
    "A97": "W", "A98": "W", "A99": "A",
}  # fmt: skip
LETTERS = {"E": "error", "W": "warning", "A": "advice"}
ELSEWHERE = {"A04 warning", "A49 error", "A49b warning", "A97 warning"}  # tests of their own


@pytest.mark.parametrize("word", ["running", "completed"])
def test_a_cycle_that_is_as_it_should_be_has_no_findings(tmp_path: Path, word: str) -> None:
    assert codes(cycle(tmp_path, word)) == set()


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("code", "situation"), SPEAK, ids=_name)
def test_a_rule_speaks(tmp_path: Path, code: str, situation: Situation) -> None:
    assert code in codes(situation.make(tmp_path))


@pytest.mark.parametrize(("code", "situation"), SILENT, ids=_name)
def test_a_rule_is_silent(tmp_path: Path, code: str, situation: Situation) -> None:
    assert code not in {found.split()[0] for found in codes(situation.make(tmp_path))}


def test_no_rule_and_no_severity_is_left_out() -> None:
    every = {f"{code} {LETTERS[each]}" for code, letters in RULES.items() for each in letters}
    assert {code for code, _ in SPEAK} | ELSEWHERE == every
    assert {code for code, _ in SILENT} | {code.split()[0] for code in ELSEWHERE} == set(RULES)
    assert set(CODES) == set(RULES) | {UNSEEN}  # every protocol's, tested with its mechanism


def test_each_rule_is_a_function_that_bears_its_number() -> None:
    named = {
        rule.__name__ for rule in (*of_state.READING, *checks.RULES, *preparation.PREPARATION_RULES)
    }
    numbers = {code.rstrip("bz").lower() for code in RULES}
    assert named == numbers - {"a49", "a99"}  # what is seen over time; what is beside the cycles


def test_each_finding_says_why_and_what_to_do(tmp_path: Path) -> None:
    for finding in read(on("completed", plan=None, test_results=None).make(tmp_path)).findings:
        assert finding.explanation and finding.remedy and finding.document


def test_another_form_of_id_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, f"{HOME}/cycle-local-1.json", state(cycle_id="cycle-local-1"))
    assert codes(tmp_path) == {"A04 warning"}


def test_what_is_no_file_of_its_own_is_a_warning(tmp_path: Path) -> None:
    write(cycle(tmp_path), f"{PROGRESS}/ra/requirements.md", "# R - v1.0.0\n")
    assert codes(tmp_path) == set()
    (tmp_path / PROGRESS / "cd").mkdir()
    (tmp_path / PROGRESS / "cd/issues.md").symlink_to("/etc/hostname")
    assert codes(tmp_path) == {"A97 warning"}


def test_many_findings_of_a_kind_become_a_few(tmp_path: Path) -> None:
    many = [task(f"T{n}", "pending", f"X{n}") for n in range(40)]
    found = read(cycle(tmp_path, plan={"version": "1.0.0", "tasks": many})).findings
    told = [finding.message for finding in found if finding.code == "A50"]
    assert len(told) == checks.SHOWN + 1
    assert told[-1] == "35 more findings A50 not listed"


def test_of_a_cycle_that_is_not_shown_advice_is_left_out(tmp_path: Path) -> None:
    cycle(tmp_path)
    other = "cycle-v1-20260301T180000-before"
    phases, numbers = ["ra", "ra"], [{"number": 1}, {"number": 1}]
    ended = state("completed", cycle_id=other, completed_phases=phases, iterations=numbers)
    write(tmp_path, f"{HOME}/{other}.json", ended)
    results = f"{HOME}/{other}.progress/vas/test-results.json"
    write(tmp_path, results, ended["test_results"])
    found = read(tmp_path).findings
    assert [(each.code, each.severity) for each in found] == [("A42", Severity.WARNING)]


def test_the_results_of_a_cycle_that_is_not_shown_are_looked_at(tmp_path: Path) -> None:
    cycle(tmp_path)
    other = "cycle-v1-20260301T180000-before"
    ended = state("completed", cycle_id=other, test_results=None)
    write(tmp_path, f"{HOME}/{other}.json", ended)
    held = {"version": "1.0.0", "summary": {"total": 2, "passed": 2, "failed": 0}}
    write(tmp_path, f"{HOME}/{other}.progress/vas/test-results.json", held)
    assert codes(tmp_path) == set()
