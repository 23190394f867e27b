"""Every command writes in an order in which a loss of power at any moment does no harm.

Content is on the disk before it gets its name, and the name before the command goes on; a log
before what is derived from it; a journal before its files.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.support import ROOT
from tests.faults import straced
from tests.faults.power import MAY_BE_LOST
from tests.faults.shim import Faults
from tests.faults.write_order import expected, record
from tests.faults.writing import ALL

# What need not survive: a page that the next command makes anew from the timeline, and empty folders
# that are cleared away.
_CLEARED_AWAY = ("remove .agentxchain/staging/turn_*", "remove .agentxchain/dispatch/turns/turn_*")
_GROUPS = ("workspaces", "governed", "coordinator", "cycle")
_JOURNAL = "acp-journal.json"
_JOURNALLED = ("workspaces", "governed", "coordinator")


def group(name: str) -> str:
    """The protocol of a command; "folder" where its name has none."""
    first = name.split()[0]
    return first if first in _GROUPS else "folder"


@pytest.mark.slow
@pytest.mark.parametrize("which", ["folder", *_GROUPS])
def test_every_command_writes_in_its_order(faults: Faults, tmp_path: Path, which: str) -> None:
    """Where an order is changed on purpose: `python -m tests.faults.write_order` prints it."""
    own = [writing for writing in ALL if group(writing.name) == which]
    found = {each.name: record(faults, tmp_path / each.name, each) for each in own}
    assert found == {name: lines for name, lines in expected().items() if group(name) == which}


def test_the_order_of_every_command_is_known() -> None:
    assert list(expected()) == [writing.name for writing in ALL]


def test_nothing_of_a_collaboration_may_be_lost_once_it_is_written() -> None:
    for name, lines in expected().items():
        unsynced = [line for line in lines if "not synced" in line and " ~" not in line]
        lost = [line for line in unsynced if not line.startswith(_CLEARED_AWAY)]
        assert [line for line in lost if any(each in line for each in MAY_BE_LOST)] == lost, name


def test_nothing_is_left_unfinished_or_written_in_place() -> None:
    verbs = {"replace", "make", "append", "create", "remove", "folder", "cut", "sync"}
    for name, lines in expected().items():
        assert {line.split()[0] for line in lines} <= verbs, name


def test_a_log_is_written_before_what_is_derived_from_it() -> None:
    order = expected()
    for name in ("append", "append a review"):
        log, derived = order[name][-2:]
        assert (log, derived) == ("append events.jsonl", "replace protocol.json")
    for name in ("init", "continue"):
        made = [line.rpartition("/")[2] for line in order[name] if line.startswith("make ")]
        assert made[-2:] == ["events.jsonl", "protocol.json"], name


def test_a_journal_is_there_before_its_files_and_goes_after_them() -> None:
    """Only one whole file needs none: it is there, or it is not."""
    for name, lines in expected().items():
        if group(name) not in _JOURNALLED:
            continue
        needing = [n for n, line in enumerate(lines) if needs_a_journal(line)]
        if len(needing) == 1 and not lines[needing[0]].startswith("append "):
            continue
        begins = [n for n in needing if lines[n].startswith("make ") and _JOURNAL in lines[n]]
        ends = [n for n in needing if lines[n].startswith("remove ") and _JOURNAL in lines[n]]
        assert len(begins) == len(ends) == 1, name
        assert (begins[0], ends[0]) == (needing[0], needing[-1]), name


def needs_a_journal(line: str) -> bool:
    """Whether a line is about a file that belongs together with others.

    What is made anew whenever it is wanted (a context for the repositories), folders, locks and
    what is the person's own does not.
    """
    verb, path = line.split()[:2]
    made_anew = "/locks/" in path or path.startswith((".coordinator/context/", "~"))
    return verb != "folder" and not made_anew and not line.startswith(_CLEARED_AWAY)


_STORE = """
import asyncio, sys
from pathlib import Path
from acp_core.protocols.wire.write import Database, keep_value

async def main():
    store = Database(Path(sys.argv[1]), lambda entries: None)
    for n in range(5):
        await store.write(lambda tx: keep_value(tx, f"k{n}", "v"))
        print("acknowledged", n, flush=True)
    await store.close()

asyncio.run(main())
"""


@pytest.mark.skipif(not straced.available(), reason="strace is not there, or may not trace")
def test_an_agents_store_has_on_the_disk_what_it_acknowledges(tmp_path: Path) -> None:
    """SQLite writes by itself: only the system calls tell."""
    trace, store = tmp_path / "trace", tmp_path / "store.sqlite3"
    command = [
        "strace",
        "-f",
        "-qq",
        "-y",
        "-o",
        trace,
        "-e",
        "trace=pwrite64,write,fdatasync,fsync",
    ]
    ran = subprocess.run(
        [*command, sys.executable, "-B", "-c", _STORE, store], cwd=ROOT, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    unsynced, acknowledged = 0, 0
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        if f"{store}-wal>" in line:
            unsynced = 0 if "sync(" in line else unsynced + ("pwrite64(" in line)
        elif '"acknowledged' in line:
            acknowledged += 1
            assert not unsynced, line
    assert acknowledged == len(ran.stdout.splitlines()) == 5
