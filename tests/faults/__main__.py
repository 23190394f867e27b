"""The long run: every campaign, as far as there is time, and a table of what came of it.

``python -m tests.faults`` takes about a quarter of an hour and writes docs/faults.md; with
``--minutes 600`` it goes on for a night. Exit code 1 where anything failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from acp_core import __version__
from acp_core.model.text import clean
from tests.faults.campaign import Result, carry_out
from tests.faults.every import EVERY

_DOCS = Path(__file__).resolve().parents[2] / "docs/faults.md"
_SHARES = {
    "kills": 2.5,
    "errors": 2.5,
    "cut": 1.5,
    "models": 2.0,
    "fuzz": 1.5,
    "limits": 1.5,
    "fleet": 1.5,
}
_TOLD = 20  # failures of a campaign that are written down


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="for all of it (15)")
    parser.add_argument("--seed", type=int, default=1, help="what all chances depend on (1)")
    parser.add_argument("--cases", type=int, help="at most so many of each campaign")
    parser.add_argument("--only", action="append", choices=list(EVERY), help="this campaign alone")
    parser.add_argument("--output", type=Path, default=_DOCS, help="the table (docs/faults.md)")
    options = parser.parse_args(argv)
    names = options.only or list(EVERY)
    whole = sum(_SHARES.get(name, 1.0) for name in names)
    memory = "/dev/shm"
    base = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    os.environ |= {"ACP_STATE": str(base / "state"), "ACP_CONFIG": str(base / "config")}
    tempfile.tempdir = str(base)
    begun = datetime.now(UTC)
    results: list[Result] = []
    left = options.minutes * 60
    try:
        for name in names:
            share = _SHARES.get(name, 1.0)
            started = time.monotonic()
            limit = max(1.0, left * share / whole)
            result = carry_out(
                EVERY[name], base / name, options.seed, seconds=limit, most=options.cases
            )
            left, whole = left - (time.monotonic() - started), whole - share
            shutil.rmtree(base / name, ignore_errors=True)
            results.append(result)
            print(_row(result), flush=True)
            for failure in result.failures:
                print(f"  {clean(failure)}", flush=True)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(_page(results, begun, argv), encoding="utf-8")
    print(f"written to {options.output}")
    return int(any(result.failures for result in results))


def _row(result: Result) -> str:
    if not result.count:
        how = "not run: what it needs is not installed"
    else:
        how = "all of them" if result.ended else result.until
    what = EVERY[result.name].what
    return (
        f"| {result.name} | {what} | {result.count} | {how} | {result.seconds:.0f} s "
        f"| {len(result.failures)} |"
    )


def _page(results: list[Result], begun: datetime, argv: list[str]) -> str:
    command = " ".join(["python -m tests.faults", *argv])
    kernel = platform.release().partition("-")[0]
    machine = f"{platform.system()} {kernel}, {os.cpu_count()} processors"
    seed = results[0].seed if results else "-"
    lines = [
        "# Fault tests: what was done to acp, and what failed",
        "",
        f"Made by `{command}` on {begun:%Y-%m-%d} at {begun:%H:%M} UTC with acp {__version__},",
        f"Python {platform.python_version()}, {machine}, load {os.getloadavg()[0]:.1f} in the end;",
        f"seed {seed}, with which the same cases are made again. A case fails where a reader",
        "raises, hangs, shows what a terminal obeys, or keeps silent about damage; where a command",
        "ends without a clear word or a true exit code; or where something acknowledged is lost, or",
        "done twice.",
        "",
        "| campaign | what is done | cases | of them | time | failures |",
        "| --- | --- | ---: | --- | ---: | ---: |",
        *(_row(result) for result in results),
        "",
    ]
    for result in results:
        if result.failures:
            lines += [f"## Failures of {result.name}", "", "```"]
            lines += [clean(each).replace("```", "'''")[:1_000] for each in result.failures[:_TOLD]]
            lines += ["```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
