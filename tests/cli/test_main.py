"""What `acp` does with what is typed after it, and how it says that something is wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.cli import main
from acp_core.model.errors import CommandError
from acp_core.person.settings import Settings
from acp_core.protocols import registry
from acp_core.protocols.locations import RUNNING
from tests.cli.support import Acp
from tests.support import toy

ROOT = Path(__file__).resolve().parents[2]

Seen = list[tuple[list[str], Settings]]


@pytest.fixture
def drawn() -> Seen:
    """What the dashboard was asked to draw."""
    return []


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: Seen) -> Callable[..., int]:
    """Runs acp in this process, with a dashboard that only notes what it shall draw."""
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def dashboard(paths: list[str], settings: Settings) -> int:
        drawn.append((paths, settings))
        return 0

    return lambda *arguments: main.run(arguments, dashboard)


def configure(folder: Path, text: str) -> None:
    (folder / "config").mkdir()
    (folder / "config" / "config.toml").write_text(text)


# --- opening the dashboard -----------------------------------------------------------------


def test_alone_it_opens_the_dashboard_here(run: Callable[..., int], drawn: Seen) -> None:
    assert run() == 0
    assert drawn[0][0] == [".", RUNNING]


def test_alone_it_opens_the_paths_of_the_settings(
    run: Callable[..., int], drawn: Seen, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    configure(tmp_path, f'paths = ["{tmp_path}/runs"]\n')
    assert run() == 0
    assert drawn[0][0] == [f"{tmp_path}/runs", RUNNING]


@pytest.mark.parametrize("typed", [["a"], ["./a"], ["a", "b"], ["--", "a"], ["dashboard", "a"]])
def test_paths_open_the_dashboard(
    typed: list[str], run: Callable[..., int], drawn: Seen, tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    assert run(*typed) == 0
    assert drawn[0][0] == [each for each in typed if each not in ("--", "dashboard")]


@pytest.mark.parametrize("typed", [["./status"], ["--", "status"]])
def test_a_path_that_is_called_like_a_command_can_be_opened(
    typed: list[str], run: Callable[..., int], drawn: Seen, tmp_path: Path
) -> None:
    (tmp_path / "status").mkdir()
    assert run(*typed) == 0
    assert len(drawn) == 1


def test_a_command_wins_over_a_path_of_its_name(
    run: Callable[..., int], drawn: Seen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "doctor").mkdir()
    run("doctor")
    assert drawn == []
    assert "Versions" in capsys.readouterr().out


@pytest.mark.parametrize("typed", [["--utc"], [".", "--utc"], ["dashboard", "--utc", "."]])
def test_options_win_over_the_settings(
    typed: list[str], run: Callable[..., int], drawn: Seen, tmp_path: Path
) -> None:
    configure(tmp_path, 'utc = false\ntheme = "nord"\n')
    assert run(*typed) == 0
    assert (drawn[0][1].utc, drawn[0][1].theme) == (True, "nord")


def test_without_a_terminal_the_dashboard_says_what_to_do_instead(acp: Acp) -> None:
    ran = acp(".")
    assert ran.returncode == 2
    assert ran.stderr == (
        "error: the dashboard needs a terminal; use `acp status` to print the fleet as text\n"
    )


# --- one clear line ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["statuss"], "error: unknown command or path: 'statuss' (did you mean 'status'?)"),
        (["runns"], "error: unknown command or path: 'runns' (did you mean 'runs'?)"),
        (["zzz"], "error: unknown command or path: 'zzz' (see `acp --help`)"),
        (["toy-sey"], "error: unknown command or path: 'toy-sey' (did you mean 'toy-say'?)"),
        (["./nowhere"], "error: ./nowhere: no such folder"),
        (["notes.md"], "error: notes.md: not a folder (name the folder that contains the file)"),
        (["nul\x00byte/"], "error: nul␀byte/: embedded null byte"),
        (
            ["status", "--jsn"],
            "error: unrecognized arguments: --jsn; did you mean --json? (see `acp status --help`)",
        ),
        (["show"], "error: FOLDER (or --folder): is missing"),
        (["x\x1b]52;c;aGk=\x07y"], "error: unknown command or path: "),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    typed: list[str],
    said: str,
    run: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    toy.register(monkeypatch, tmp_path / "installed")
    (tmp_path / "runs").mkdir()
    (tmp_path / "notes.md").write_text("")
    assert run(*typed) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(said)
    assert err.endswith("\n") and err.count("\n") == 1
    assert "\x1b" not in err and "\x07" not in err


def test_unreadable_settings_are_one_clear_line(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(tmp_path, "theme = [")
    assert run() == 2
    err = capsys.readouterr().err
    assert "config.toml" in err and err.count("\n") == 1


def failing(error: BaseException) -> Callable[[list[str], Settings], int]:
    def dashboard(paths: list[str], settings: Settings) -> int:
        raise error

    return dashboard


def test_a_fault_of_ours_is_one_line_that_says_how_to_see_more(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = failing(ZeroDivisionError("1 / 0\nand\x1b[2J more"))
    assert main.run([], fault) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ZeroDivisionError: 1 / 0␤and␛[2J more (")
    assert "ACP_DEBUG=1" in err and err.count("\n") == 1
    monkeypatch.setenv("ACP_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main.run([], fault)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(errno.EPIPE, "gone"), 141),
        (CommandError("no", 3), 3),
        (SystemExit(4), 4),
        (SystemExit(), 0),
    ],
)
def test_however_it_ends_there_is_an_exit_code(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    monkeypatch.setattr(main, "_close_broken_output", lambda: None)
    assert main.run([], failing(error)) == code


def test_a_reader_that_goes_away_is_no_error(acp: Acp) -> None:
    """As ``acp --help | head -1`` does."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            acp.command("--help"), stdout=writing, stderr=subprocess.PIPE, text=True,
            check=False, env=acp.env,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_output_is_no_error(closed: str) -> None:
    """Somebody may close what is not wanted, as ``>&-`` does in a shell."""
    command = f"exec {sys.executable} -m acp_tui --version {closed}>&-"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert bool(ran.stdout) == (closed != "1")


def test_a_terminal_without_our_signs_gets_plain_ones(acp: Acp) -> None:
    ran = acp("doctor", env={"PYTHONIOENCODING": "ascii"})
    assert "v ok" in ran.stdout
    assert "acp prints plain signs" in ran.stdout
    assert ran.stderr == ""


# --- help ----------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", [["--help"], ["-h"], ["help"]])
def test_help_is_the_map_of_everything(acp: Acp, typed: list[str]) -> None:
    ran = acp(*typed)
    assert ran.returncode == 0
    headings = [line for line in ran.stdout.splitlines() if line.endswith(":")]
    known = ["Watch:", "History:", "Agents:", "Orchestrate:", "Share:", "Fix:", "More:", "Toy:"]
    assert headings == ["Usage:", *known, "Options:"]
    for protocol in registry.bundled():
        for command in protocol.commands:
            assert f"\n  {command.name} " in ran.stdout
    assert "toy-say" in ran.stdout


@pytest.mark.parametrize("typed", [["help", "status"], ["status", "--help"], ["status", "-h"]])
def test_each_command_explains_itself(acp: Acp, typed: list[str]) -> None:
    ran = acp(*typed)
    assert ran.returncode == 0
    assert ran.stdout.startswith("Usage: acp status")


def test_version_is_the_package_s(acp: Acp) -> None:
    from acp_core import __version__

    assert acp("--version").stdout == f"acp {__version__}\n"


# --- a protocol's own commands -------------------------------------------------------------


def test_a_protocol_brings_its_commands(acp: Acp) -> None:
    folder = toy.make(acp.home / "talk")
    ran = acp("toy-say", "talk", "hello there")
    assert (ran.returncode, ran.stdout) == (0, "said\n")
    assert "hello there" in (folder / toy.LOG).read_text()
    assert acp("toy-say", "nowhere", "x").returncode == 2
    assert acp("toy-say", "--help").stdout.startswith("usage: acp toy-say")
