"""Files open in the person's editor, by a list of arguments and never through a shell."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import pytest
from textual.app import App

from acp_tui.terminal import editor
from acp_tui.terminal.editor import EditorProblem
from tests.support.terminal import Terminal


@pytest.mark.parametrize(
    ("setting", "environment", "argv"),
    [
        ("hx -w", {"VISUAL": "vim"}, ["hx", "-w"]),
        (None, {"VISUAL": "code --wait", "EDITOR": "vi"}, ["code", "--wait"]),
        (" ", {"EDITOR": "'/opt/my editor/ed' -x"}, ["/opt/my editor/ed", "-x"]),
        (None, {"VISUAL": "", "EDITOR": "vi; rm -rf $HOME"}, ["vi;", "rm", "-rf", "$HOME"]),
    ],
)
def test_the_setting_comes_first_then_visual_then_editor(
    setting: str | None, environment: dict[str, str], argv: list[str]
) -> None:
    assert editor.editor(setting, environment) == argv


def test_where_none_is_named_a_common_one_is_taken_or_the_lack_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}" if name == "vi" else None)
    assert editor.editor(None, {}) == ["vi"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EditorProblem, match="set VISUAL or EDITOR"):
        editor.editor(None, {})


def test_a_command_with_an_open_quote_is_one_clear_line() -> None:
    with pytest.raises(EditorProblem, match=r"Could not parse \$VISUAL"):
        editor.editor(None, {"VISUAL": "vim '"})


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("/usr/bin/vim", ["+7", "/w/a.md"]),
        ("nano", ["+7", "/w/a.md"]),
        ("hx", ["/w/a.md:7"]),
        ("code", ["--goto", "/w/a.md:7"]),
        ("something-else", ["/w/a.md"]),
    ],
)
def test_an_editor_that_is_known_goes_to_the_line(program: str, arguments: list[str]) -> None:
    assert editor.command([program], Path("/w/a.md"), 7) == [program, *arguments]
    assert editor.command([program], Path("/w/a.md")) == [program, "/w/a.md"]


def test_a_name_that_looks_like_an_option_or_an_order_is_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("-rf", "$(reboot)", "a; b", "+:!sh"):
        assert editor.command(["vi"], Path(name)) == ["vi", str(tmp_path / name)]


async def test_without_a_terminal_it_says_that_there_is_none() -> None:
    app: App[None] = App()
    async with app.run_test():
        with pytest.raises(EditorProblem, match="Cannot open an editor without a terminal"):
            editor.edit(app, Path("/w/a.md"), setting="true")


def test_no_desktop_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(EditorProblem, match="copy its path"):
        editor.open_folder(Path("/w"))


PROGRAM = """
import sys
from pathlib import Path
from textual.app import App
from textual.widgets import Label
from acp_tui.terminal.editor import EditorProblem, edit

class Dashboard(App):
    BINDINGS = [("e", "edit({editor!r})"), ("m", "edit('/no/such/editor')"), ("f", "edit('false')")]
    def compose(self):
        yield Label("dashboard is here")
    def action_edit(self, editor):
        try:
            edit(self, Path(sys.argv[1]), 3, editor)
        except EditorProblem as problem:
            self.query_one(Label).update(str(problem).replace("[", "("))
        else:
            self.query_one(Label).update("came back")

Dashboard().run()
"""

EDITOR = """#!{python}
import sys
print("editing", sys.argv[1:], flush=True)
sys.stdin.readline()
"""


def test_the_dashboard_steps_aside_for_an_editor_and_comes_back(tmp_path: Path) -> None:
    """In a real terminal: the editor has it for itself, and a broken one leaves nothing broken."""
    program, own, file = tmp_path / "program.py", tmp_path / "ed", tmp_path / "notes.md"
    own.write_text(EDITOR.format(python=sys.executable))
    own.chmod(own.stat().st_mode | stat.S_IXUSR)
    program.write_text(PROGRAM.replace("{editor!r}", repr(str(own))))
    root = str(Path(__file__).parents[2])
    command = [sys.executable, str(program), str(file)]
    with Terminal(command, env={"PYTHONPATH": root}, columns=200, rows=20) as terminal:
        terminal.wait_for("dashboard is here")
        terminal.send("e")
        terminal.wait_for(f"editing ['{file}']")
        assert "dashboard is here" not in terminal.text
        terminal.send("\r")
        terminal.wait_for("came back")
        terminal.send("m")
        terminal.wait_for("Could not start /no/such/editor: No such file or directory")
        terminal.send("f")
        terminal.wait_for("false exited with code 1")
