"""``python -m tests.bench``: measures acp on this machine, beside baselines of the same run."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from acp_core.cli.output import dump, say
from acp_core.model.errors import CommandError
from tests.bench import against
from tests.bench import page as pages
from tests.bench import sections as known
from tests.bench.bench import Bench
from tests.bench.page import put_into
from tests.bench.programs import Failed, as_people_run_it
from tests.bench.sections import Section
from tests.support.terminal import NotShown

SCHEMA = "acp.bench/1"


@click.command()
@click.argument("sections", nargs=-1, metavar="[SECTION]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (acp.bench/1).")
@click.option("--runs", default=5, type=click.IntRange(1, 100), help="Runs of each figure (5).")
@click.option("--quick", is_flag=True, help="One run over small logs: to see that it works.")
@click.option(
    "--write", "page", metavar="FILE", help="Also put the figures into this Markdown page."
)
@click.option(
    "--against", "other", metavar="PATH", help="Measure another copy's acp in turn with this one."
)
@click.option("--list", "listed", is_flag=True, help="Print the sections and measure nothing.")
def bench(
    sections: tuple[str, ...],
    as_json: bool,
    runs: int,
    quick: bool,
    page: str | None,
    other: str | None,
    listed: bool,
) -> int:
    """Measure acp on this machine, in real pseudo-terminals.

    SECTIONs choose what is measured; without one, everything is, which takes some minutes.
    Every figure stands beside a baseline of the same run, and beside its aim where it has one.
    Exit code 0, whatever the figures are; 2 where a section could not be measured, after the others.
    """

    try:
        wanted = known.chosen(sections)
    except KeyError as error:
        names = ", ".join(section.name for section in known.SECTIONS)
        raise CommandError(f"no section {error.args[0]!r}; there are: {names}") from None
    if listed:
        for section in wanted:
            say(f"{section.name:<10} {section.summary}")
        return 0
    if other is not None:
        return _compare(wanted, other, as_json, runs, quick, page)
    command = shlex.join(["python", "-m", "tests.bench", *sys.argv[1:]])
    told: list[dict[str, object]] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="acp-bench-") as base, as_people_run_it(base):
        kwargs = {"runs": 1 if quick else runs, **_sizes(quick)}
        measured = Bench(Path(base), **kwargs)
        for section in wanted:
            if section.missing:
                _tell(f"{section.name}: left out, {section.missing} is not installed")
                continue
            _tell(f"{section.name}: {section.summary}")
            begun, load = datetime.now(UTC), os.getloadavg()[0]
            try:
                figures = list(known.measure(measured, section))
            except (Failed, NotShown) as error:
                raise CommandError(f"{section.name}: {error}") from None
            on = pages.setting(begun, command, kwargs["runs"], (load, os.getloadavg()[0]))
            told.append({**on.told(), "figures": [figure.told() for figure in figures]})
            if page is not None:
                _write(page, section, pages.markdown(section, figures, on))
            if not as_json:
                for line in pages.table(section, figures, on):
                    say(line)
    if as_json:
        say(dump({"schema": SCHEMA, "sections": told}))
    return failed


def _sizes(quick: bool) -> dict[str, Any]:
    """How large what is measured is; "say" tells what is done now."""
    small = {"changes": 3, "lengths": (10, 1_000), "fleet": 20, "others": 2}
    return {"say": _tell, **(small if quick else {})}


def _compare(
    wanted: Sequence[Section], other: str, as_json: bool, runs: int, quick: bool, page: str | None
) -> int:
    """Measure this copy and another one in turn."""

    if page is not None:
        raise CommandError("--write keeps the figures of one copy: leave it out with --against")
    program = shutil.which(other)
    if program is None:
        raise CommandError(f"{other}: no such program")
    program = os.path.abspath(program)
    told: list[dict[str, object]] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="acp-bench-") as base:
        for section in wanted:
            if section.missing:
                _tell(f"{section.name}: left out, {section.missing} is not installed")
                continue
            _tell(f"{section.name}: {section.summary}")
            try:
                pairs = against.compare(
                    section, program, 1 if quick else runs, Path(base),
                    lambda place: Bench(place, runs=1, **_sizes(quick)),
                )  # fmt: skip
            except (Failed, NotShown) as error:
                _tell(f"error: {section.name}: {error}")
                failed = 2
                continue
            told.append({"section": section.name, "figures": [pair.as_json() for pair in pairs]})
            if not as_json:
                for line in against.table(section, pairs, other):
                    say(line)
    if as_json:
        say(dump({"schema": SCHEMA, "against": program, "sections": told}))
    return failed


def _write(path: str, section: Section, block: str) -> None:

    place = Path(path)
    before = place.read_text(encoding="utf-8") if place.exists() else ""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(put_into(before, section, block), encoding="utf-8")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(bench.main(prog_name="python -m tests.bench", standalone_mode=False))
    except (click.ClickException, CommandError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
