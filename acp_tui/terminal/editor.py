"""Opening files in the person's editor, and folders in whatever shows folders.

Programs are started from a list of arguments, never through a shell: a file's name is
data. The dashboard steps aside while an editor in the terminal runs, and comes back.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App

_PLUS_LINE = frozenset(
    {"vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "micro", "joe", "kak",
     "ne", "jed", "mcedit"}
)  # fmt: skip
_COLON_LINE = frozenset({"hx", "helix", "subl", "sublime_text", "zed", "lapce"})
_GOTO = frozenset({"code", "codium", "code-insiders", "cursor", "windsurf"})
FALLBACKS = ("nano", "vim", "vi")


class EditorProblem(Exception):
    """Why no editor could run, in one plain line."""


def editor(setting: str | None, environment: Mapping[str, str]) -> list[str]:
    """The editor's command: the setting, else ``VISUAL``, else ``EDITOR``, else a common one.

    Args:
        setting: ``editor`` of ``config.toml``.
        environment: Where ``VISUAL`` and ``EDITOR`` are looked up.

    Returns:
        The program and its first arguments, split as a shell would, but run by none.

    Raises:
        EditorProblem: none is named and none of the common ones is there, or the text
            cannot be split.
    """
    for source, text in (
        ("editor in config.toml", setting),
        ("$VISUAL", environment.get("VISUAL")),
        ("$EDITOR", environment.get("EDITOR")),
    ):
        if text and text.strip():
            try:
                return shlex.split(text)
            except ValueError as error:
                raise EditorProblem(f"Could not parse {source}: {error}") from None
    for name in FALLBACKS:
        if shutil.which(name):
            return [name]
    raise EditorProblem("No editor: set VISUAL or EDITOR, or editor in config.toml")


def command(argv: list[str], path: Path, line: int | None = None) -> list[str]:
    """``argv`` with the file to open and, for editors known to take one, the line to go to."""
    target = os.path.abspath(path)  # never begins with a dash
    if line is None or line < 1:
        return [*argv, target]
    name = Path(argv[0]).name.removesuffix(".exe")
    if name in _PLUS_LINE:
        return [*argv, f"+{line}", target]
    if name in _COLON_LINE:
        return [*argv, f"{target}:{line}"]
    if name in _GOTO:
        return [*argv, "--goto", f"{target}:{line}"]
    return [*argv, target]


def edit(app: App[Any], path: Path, line: int | None = None, setting: str | None = None) -> None:
    """Open a file in the editor and come back when it ends.

    Raises:
        EditorProblem: no editor, it cannot be started, it ended with an error, or the
            dashboard has no terminal to step aside from (in a browser).
    """
    from textual.app import SuspendNotSupported

    argv = command(editor(setting, os.environ), path, line)
    code, failed = 0, ""
    try:
        with app.suspend():  # an exception inside would keep the dashboard from coming back
            try:
                code = subprocess.run(argv, check=False).returncode
            except OSError as error:
                failed = error.strerror or str(error)
    except SuspendNotSupported:
        raise EditorProblem(
            "Cannot open an editor without a terminal; copy the path instead"
        ) from None
    if failed:
        raise EditorProblem(f"Could not start {argv[0]}: {failed}")
    if code:
        raise EditorProblem(f"{argv[0]} exited with code {code}")


def open_folder(folder: Path) -> None:
    """Show a folder in the desktop's file manager, without waiting for it.

    Raises:
        EditorProblem: there is no desktop here, or nothing that opens folders.
    """
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    desktop = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if not desktop or not shutil.which(opener):
        raise EditorProblem("No desktop to open the folder on; copy its path instead")
    try:
        subprocess.Popen(
            [opener, os.path.abspath(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise EditorProblem(f"Could not start {opener}: {error.strerror or error}") from None
