"""How much of acp each command loads: in bytes of source and nodes of syntax, not in modules.

Neither depends on the machine, or on how a subject is cut into files. Whoever raises a number here
should know why: an agent waits for it at every turn.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hygiene.sources import PACKAGES, module_file
from tests.hygiene.test_start import run

NEVER = {"hashlib", "_hashlib", "ssl", "socket", "subprocess", "inspect", "dataclasses", "pathlib",
         "typing", "threading", "atexit"}  # fmt: skip
"""What no command that agents run at every turn imports: each costs milliseconds, and with the
last two the process would not end at once (see `acp_core.protocols.kit.command_line.end`)."""
BUDGETS = {"next": (250_000, 37_200), "wait": (250_000, 37_200), "append": (250_000, 37_700),
           "validate": (296_000, 46_700)}  # fmt: skip
"""Bytes and nodes of acp's own modules: as much as was found, rounded up."""
DASHBOARD = {
    "acp_core.fleet",  # finds, watches and reads collaborations, in threads
    "acp_core.history.recorder",  # writes recordings
    "acp_core.protocols.registry",  # looks for what other distributions bring
    "pydantic",  # makes forms, and checks what is given
    "sqlite3",  # opens recordings
    "psutil",  # asks whether processes live
    "watchfiles",  # listens for changes in folders
    "markdown_it",  # renders documents
    "click",  # lists the commands, and completes them
    "acp_core.model.snapshot",  # what was read of a collaboration
    "acp_tui.widgets.fleet_table",  # draws what was read of many
    "acp_tui.screens.collaboration",  # draws what was read of one
}
"""What the dashboard imports after its first picture only, with what it does."""
COLLABORATION = {
    "acp_core.agents.background",  # starts processes
    "acp_core.agents.registry",  # starts and ends loops
    "acp_core.agents.session_lock",  # takes locks
    "acp_core.files.requests",  # asks processes of other accounts
    "acp_core.history.moments",  # orders the past into moments
    "acp_core.history.past",  # opens recordings
    "acp_core.protocols.folder.acts.agents",  # plans acts on agents
    "acp_core.protocols.folder.conduct.turns",  # takes turns
    "acp_core.protocols.folder.prompts.turn",  # writes prompts
    "acp_core.protocols.folder.skill",  # installs what agents load
    "acp_core.protocols.folder.write.append",  # writes the log
    "acp_core.protocols.folder.write.repair",  # repairs folders
    "acp_core.protocols.folder.write.init",  # makes folders
    "importlib.metadata",  # reads what is installed
    "linkify_it",  # renders links of documents
    "markdown_it",  # renders documents
}
"""What it imports after the first picture of a healthy collaboration only: what acts, prompts or
repairs, what other accounts do, and what renders documents."""
FIRST, OPENED = (188_000, 26_300), (1_330_000, 218_500)
"""Bytes and nodes of acp's modules that are there with the first picture of all, and with that one."""


def within(modules: set[str], budget: tuple[int, int]) -> bool:
    """Whether the modules of acp among these hold no more than the budget's bytes and nodes."""
    named = (module_file(each) for each in modules if each.partition(".")[0] in PACKAGES)
    texts = [path.read_bytes() for path in set(named) if path is not None]
    loaded = sum(map(len, texts)), sum(sum(1 for _ in ast.walk(ast.parse(each))) for each in texts)
    assert texts, "nothing of acp was loaded"
    print("bytes and nodes:", loaded)
    return loaded[0] <= budget[0] and loaded[1] <= budget[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "c"
    words = ["--participant", "writer", "--participant", "reader"]
    words += ["--objective", "Choose", "--completion", "Chosen"]
    assert run("init", "--folder", str(place), *words)[0] == 0
    return place


ARGUMENTS = {
    "next": ["--participant", "writer"],
    "wait": ["--participant", "writer"],
    "append": ["--participant", "writer", "--event", "proposal_submitted", "--summary", "Done",
               "--reply-to", "1"],
    "validate": [],
}  # fmt: skip


@pytest.mark.parametrize("command", list(BUDGETS))
def test_a_turn_loads_no_more_than_its_budget(command: str, folder: Path) -> None:
    code, modules = run(command, "--folder", str(folder), *ARGUMENTS[command])
    assert code == 0
    assert within(modules, BUDGETS[command])


@pytest.mark.parametrize("command", ["next", "append", "validate"])
def test_a_turn_imports_nothing_that_takes_milliseconds(command: str, folder: Path) -> None:
    code, modules = run(command, "--folder", str(folder), *ARGUMENTS[command])
    assert code == 0
    assert NEVER & modules == set()


def test_the_first_picture_needs_nothing_that_reads_collaborations() -> None:
    code = "import sys, acp_tui.app; print(*sys.modules, sep='\\n')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.split())
    assert DASHBOARD & modules == set()
    assert within(modules, FIRST)


LOOKED = """
import sys
from pathlib import Path
import acp_tui.app
from acp_core.person.attention import Attention
from acp_core.protocols.discovery import Explorer, identify
from acp_core.protocols.discovery import newest
from acp_core.protocols.registry import bundled
folder = Path(sys.argv[1])
assert newest(folder, identify(folder, bundled()).protocol, 10)
assert [each.key for each in Explorer([folder.parent], known=bundled()).explore()] == [str(folder)]
Attention().is_archived(str(folder))
print(*sys.modules, sep="\\n")
"""


def test_the_newest_events_and_the_names_need_nothing_that_reads_collaborations(
    folder: Path,
) -> None:
    """They stand in the first picture, or right after it (see `acp_tui.opening`)."""
    ran = subprocess.run(
        [sys.executable, "-c", LOOKED, str(folder)], capture_output=True, text=True, check=True
    )
    modules = set(ran.stdout.split())
    assert modules & (DASHBOARD - {"acp_core.protocols.registry"}) == set()
    assert "importlib.metadata" not in modules  # what other distributions bring is asked for later


READ = """
import sys
import acp_tui.app, acp_tui.screens.collaboration
from acp_core.fleet import Fleet
from acp_core.history.recorder import Recorder
sys.meta_path = [finder for finder in sys.meta_path if "importlib" in finder.__module__]
(snapshot,) = Fleet(sys.argv[1:]).read()
assert len(snapshot.events) == 1
print(*sys.modules, sep="\\n")
"""


def test_the_newest_event_of_a_collaboration_needs_nothing_that_acts_or_renders(
    folder: Path,
) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, check=True
    )
    modules = set(ran.stdout.split())
    assert "acp_core.protocols.folder.matters.causes" in modules  # it was diagnosed
    assert COLLABORATION & modules == set()
    assert within(modules, OPENED)
