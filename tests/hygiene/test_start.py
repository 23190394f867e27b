"""What agents run at every turn starts light: told by what was imported, not by seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hygiene.sources import ROOT
from tests.hygiene.test_imports import portable_roots

HEAVY = {
    "click",
    "pydantic",
    "textual",
    "rich",
    "watchfiles",
    "platformdirs",
    "asyncio",
    "acp",
    "mcp",
}
"""Libraries; the last two are those of live sessions and of tools."""
AT_EVERY_TURN = ("append", "next", "wait", "validate")

START = """
import json, sys
from acp_core.cli.main import run
from acp_tui import __main__
draws = sys.argv[1] == "the dashboard"
code = run(sys.argv[2:], lambda *_: 0) if draws else __main__.main(sys.argv[1:])
print()
print(json.dumps([code, sorted(sys.modules)]))
"""


def run(*arguments: str, folder: Path | None = None) -> tuple[int, set[str]]:
    """Run acp in a new interpreter; its exit code and every module that it imported."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", START, *arguments],
        capture_output=True, text=True, check=True, cwd=folder, env=environment,
    )  # fmt: skip
    code, modules = json.loads(ran.stdout.splitlines()[-1])
    return code, set(modules)


def heavy(modules: set[str]) -> set[str]:
    return HEAVY & {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("command", ["init", *AT_EVERY_TURN])
def test_help_of_what_agents_run_imports_nothing_heavy(command: str) -> None:
    code, modules = run(command, "--help")
    assert code == 0
    assert heavy(modules) == set()


def test_a_turn_imports_nothing_heavy(tmp_path: Path) -> None:
    who = ["--folder", str(tmp_path / "c"), "--participant", "writer"]
    init = [*who, "--participant", "reader", "--objective", "Choose", "--completion", "Chosen"]
    for arguments in (
        ["init", *init],
        ["next", *who],
        ["wait", *who],
        ["append", *who, "--event", "proposal_submitted", "--summary", "Done", "--reply-to", "1"],
        ["validate", *who[:2]],
    ):
        code, modules = run(*arguments)
        assert code == 0, arguments
        assert heavy(modules) == set(), arguments


def test_the_map_of_commands_imports_none_of_them() -> None:
    code, modules = run("--help")
    assert code == 0
    assert {"textual", "pydantic", "rich", "watchfiles"} & modules == set()
    assert "acp_core.cli.status" not in modules


def test_nothing_but_settings_is_imported_before_the_dashboard_draws() -> None:
    code, modules = run("the dashboard", ".")
    assert code == 0
    assert heavy(modules) == set()


def test_the_status_of_few_loads_nothing_that_reads_many(tmp_path: Path) -> None:
    who = ["--participant", "writer", "--participant", "reader"]
    run(
        "init",
        "--folder",
        str(tmp_path / "c"),
        *who,
        "--objective",
        "Choose",
        "--completion",
        "Chosen",
    )
    code, modules = run("status", str(tmp_path))
    assert code == 0
    assert {"acp_core.fleet.readers", "acp_core.fleet.snapshot_cache"} & modules == set()


OPENED = """
import json, sys, time
real, begun = time.monotonic, time.monotonic()
time.monotonic = lambda: begun + (real() - begun) / 30  # what waits for a while waits for the picture,
import asyncio                                          # however busy the machine is
from acp_core.person.settings import Settings
from acp_tui.app import AcpApp

async def main():
    app = AcpApp([sys.argv[1]], settings=Settings())
    seen = []
    drawn = app.post_display_hook
    def look():
        drawn()
        shown = getattr(app.screen, "timeline", None)
        if not seen and shown is not None and shown.view.model.length:
            seen.extend(sys.modules)
    app.post_display_hook = look
    async with app.run_test(size=(120, 36)) as pilot:
        while not seen:
            await pilot.pause(0.01)
    print(json.dumps(sorted(seen)))

asyncio.run(main())
"""
AFTERWARDS = {
    "acp_core.agents.registry": "there are no loops",
    "acp_core.agents.state": "there are no loops",
    "acp_core.fleet.readers": "there are few collaborations",
    "acp_core.history.observing": "recording goes after the picture",
    "acp_tui.widgets.markdown_page": "the text of a document comes after the picture",
}


def test_what_the_first_picture_of_a_collaboration_does_not_show_is_imported_after_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "c"
    who = ["--participant", "writer", "--participant", "reader"]
    run("init", "--folder", str(folder), *who, "--objective", "Choose", "--completion", "Chosen")
    own = {f"ACP_{name}": str(tmp_path / name) for name in ("STATE", "CONFIG", "CACHE")}
    ran = subprocess.run(
        [sys.executable, "-c", OPENED, str(folder)],
        capture_output=True, text=True, check=True, env={**os.environ, **own, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    modules = set(json.loads(ran.stdout.splitlines()[-1]))
    assert "acp_tui.screens.collaboration" in modules
    assert modules & AFTERWARDS.keys() == set()


def test_the_portable_rooms_import_under_a_bare_python() -> None:
    """``-I -S``: no installed package, no environment, nothing of the user's."""
    lines = [
        "import sys, importlib",
        f"sys.path.insert(0, {str(ROOT)!r})",
        f"for name in {portable_roots()!r}: importlib.import_module(name)",
        "print(any('site-packages' in str(getattr(m, '__file__', '')) for m in sys.modules.values()))",
    ]
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "\n".join(lines)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "False", "")


COMPILED = """
import json, sys
import re._compiler as compiler
compiled, compile_one = [], compiler.compile

def noted(pattern, flags=0):
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] in ("re", "functools"):
        frame = frame.f_back
    compiled.append([frame.f_globals["__name__"], str(pattern)[:60]])
    return compile_one(pattern, flags)

compiler.compile = noted
from acp_tui import __main__
code = __main__.main(sys.argv[1:])
ours = [each for each in compiled if each[0].startswith("acp_")]
print()
print(json.dumps([code, ours, sorted({"importlib", "warnings"} & set(sys.modules))]))
"""


def test_a_turn_of_a_short_log_compiles_next_to_nothing_and_needs_no_importlib(
    tmp_path: Path,
) -> None:
    """An expression that takes many lines at one go takes as long to compile as twenty lines take."""
    who = ["--folder", str(tmp_path / "c"), "--participant", "writer"]
    init = [*who, "--participant", "reader", "--objective", "Choose", "--completion", "Chosen"]
    assert run("init", *init)[0] == 0
    reply = ["--event", "blocked", "--summary", "Done", "--reply-to", "1"]
    for arguments in (["next", *who], ["append", *who, *reply]):
        ran = subprocess.run(
            [sys.executable, "-c", COMPILED, *arguments],
            capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        code, compiled, modules = json.loads(ran.stdout.splitlines()[-1])
        assert code == 0, ran.stdout
        assert [each for each in compiled if each[0] != "acp_core.model.text"] == []
        assert modules == []
