"""`python -m tests.bench` measures for real: the quickest sections, on small logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.bench import against, page
from tests.bench.bench import Bench
from tests.bench.figures import Aim, Figure, Run, interleaved, percentile
from tests.bench.sections import chosen

[START, FLEET] = chosen(["start", "fleet"])
AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.bench", *words],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip


@pytest.mark.slow
def test_what_agents_run_is_measured_beside_a_bare_python(tmp_path: Path) -> None:
    place = tmp_path / "figures.md"
    ran = bench("commands", "--quick", "--json", "--write", str(place))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["schema"] == "acp.bench/1"
    [section] = told["sections"]
    names = {figure["name"] for figure in section["figures"]}
    assert {"append, 10 events", "next, 1,000 events", "validate, 10 events"} <= names
    for figure in section["figures"]:
        assert figure["baseline_name"] == "python -c pass"
        for each in ("value", "baseline", "processor", "baseline_processor"):
            assert figure[each] > 0  # which of them is larger is no test: other work runs beside
    assert "| append, 10 events |" in place.read_text()


@pytest.mark.slow
def test_every_section_measures(tmp_path: Path) -> None:
    ran = bench("--quick", "--json")
    assert ran.returncode == 0, ran.stderr
    sections = json.loads(ran.stdout)["sections"]
    figures = [figure for section in sections for figure in section["figures"]]
    found = {figure["section"] for figure in figures}
    assert {"start", "changes", "commands", "timeline", "fleet", "parked", "replay"} <= found
    assert all(figure["baseline"] >= 0 and figure["baseline_name"] for figure in figures)


def another_copy(folder: Path) -> tuple[Path, Path]:
    """An ``acp`` that notes each command before it does it; the program, and its notes."""
    program, notes = folder / "acp", folder / "notes"
    program.write_text(
        f'#!/bin/sh\necho "$1" >>{notes}\nexec {sys.executable} -P -m acp_tui "$@"\n'
    )
    program.chmod(0o755)
    return program, notes


@pytest.mark.slow
def test_two_copies_are_measured_in_turn(tmp_path: Path) -> None:
    program, notes = another_copy(tmp_path)
    ran = bench("commands", "--quick", "--json", "--against", str(program))
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["against"] == str(program)
    [section] = told["sections"]
    for figure in section["figures"]:
        [this], [other] = figure["this"], figure["other"]
        assert (figure["median"], figure["median_other"]) == (this, other)
        assert figure["ratio"] == this / other
        assert figure["spread"] == 1.0
    measured = notes.read_text().split()
    assert measured == ["next", "validate", "append"] * 2 * 2, "both lengths, each warmed up"
    shown = bench("commands", "--quick", "--against", str(program)).stdout
    assert str(program) in shown
    assert "append, 10 events" in shown


@pytest.mark.slow
def test_a_section_that_fails_loses_none_of_the_others(tmp_path: Path) -> None:
    program, notes = tmp_path / "acp", tmp_path / "notes"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = bench ] && {{ pwd >{notes}; echo "it broke" >&2; exit 1; }}\n'
        f'exec {sys.executable} -P -m acp_tui "$@"\n'
    )
    program.chmod(0o755)
    ran = bench("replay", "commands", "--quick", "--json", "--against", str(program))
    assert ran.returncode == 2
    assert "error: replay: " in ran.stderr
    assert "it broke" in ran.stderr
    assert {each["section"] for each in json.loads(ran.stdout)["sections"]} == {"commands"}
    assert not (Path(notes.read_text().strip()) / "acp_core").exists(), "it would import this one"


@pytest.mark.slow
def test_who_begins_changes_with_each_round(tmp_path: Path) -> None:
    program, notes = another_copy(tmp_path)
    order: list[str] = []

    def make(place: Path) -> Bench:
        order.append(place.name)
        return Bench(place, runs=1, lengths=(10,))

    [commands] = chosen(["commands"])
    pairs = against.compare(commands, str(program), 2, tmp_path / "base", make)
    assert [name.split("-")[1] for name in order] == ["this", "other", "other", "this"]
    assert all(len(pair.this) == len(pair.other) == 2 for pair in pairs)
    assert notes.exists()


def test_a_ratio_stands_beside_the_spread_of_the_other_copy() -> None:
    pair = against.Pair("a thing", "ms", (12.0, 10.0, 11.0), (10.0, 8.0, 12.0))
    assert pair.medians == (11.0, 10.0)
    assert (pair.ratio, pair.spread) == (1.1, 1.5)
    assert against.Pair("nothing", "", (1.0,), (0.0,)).ratio is None
    [*_, line, _] = against.table(START, [pair], "old/acp")
    assert line.split() == ["a", "thing", "11.0", "ms", "10.0", "ms", "1.10x", "1.50x"]


def test_another_copy_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ran = bench("commands", "--against", str(tmp_path / "nothing"))
    assert ran.returncode == 2
    assert "no such program" in ran.stderr


def test_the_program_says_where_its_measurements_went(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "acp_tui", "bench", "--list"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "python -m tests.bench" in ran.stderr


def test_a_section_that_does_not_exist_is_named() -> None:
    ran = bench("nothing")
    assert ran.returncode == 2
    assert "no section 'nothing'" in ran.stderr
    assert "commands" in ran.stderr


def test_measures_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []

    def measure(name: str) -> Run:
        order.append(name)
        return Run(float(len(order)), 0.5)

    found = interleaved(3, {"a": lambda: measure("a"), "b": lambda: measure("b")})
    assert order == ["a", "b"] * 4
    assert found == {"a": Run(5.0, 0.5), "b": Run(6.0, 0.5)}


def test_a_percentile_of_few_values_is_the_largest() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.99) == 3.0
    assert percentile(range(1000), 0.99) == 990


def a_figure(value: float, aim: Aim | None) -> Figure:
    return Figure("start", "a thing", "ms", value, "another", 10.0, aim)


def a_setting() -> page.Setting:
    return page.Setting(AT, "acp bench", 2, "3.11.0", "8.2.8", "pyte", 5, (0.5, 0.7))


def test_an_aim_is_met_or_not() -> None:
    aim = Aim("at most 20 ms", 20.0)
    assert [a_figure(value, aim).met for value in (20.0, 20.1)] == [True, False]
    assert a_figure(5.0, None).met is None
    block = page.markdown(START, [a_figure(30.0, aim)], a_setting())
    assert "| a thing | 30.0 ms | 10.0 ms, another | 3.0x | at most 20 ms" in block
    assert "not met |" in block
    assert "load 0.5 at the start, 0.7 at the end" in block


def test_only_the_section_that_was_measured_is_replaced_on_a_page() -> None:
    first = page.markdown(START, [a_figure(1.0, None)], a_setting())
    second = page.markdown(START, [a_figure(2.0, None)], a_setting())
    other = page.markdown(FLEET, [a_figure(3.0, None)], a_setting())
    whole = page.put_into(page.put_into("", START, first), FLEET, other) + "\nWhy it is so.\n"
    replaced = page.put_into(whole, START, second)
    assert replaced == whole.replace(first, second)
    assert "2.00 ms" in replaced
    assert "1.00 ms" not in replaced
    assert page.put_into("# Mine\n", START, first) == f"# Mine\n\n{first}\n"
