"""What the tests of folder collaborations do: commands, in this process or as real ones; and looks."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from acp_core.protocols import registry
from acp_core.protocols.folder import PROTOCOL, collaboration
from acp_core.protocols.folder.collaboration import FolderCollaboration as FolderCollaboration

ROOT = Path(__file__).resolve().parents[3]


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def acp(*argv: str | Path) -> Ran:
    """Run ``acp NAME ...`` in this process."""
    name, *arguments = map(str, argv)
    target = next(command.target for command in PROTOCOL.commands if command.name == name)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = registry.load(target)(arguments)
        except SystemExit as end:  # argparse: help, or a complaint
            code = end.code if isinstance(end.code, int) else 0
    return Ran(code, out.getvalue(), err.getvalue())


def open_folder(
    folder: Path | str, humans: frozenset[str] | None = frozenset()
) -> FolderCollaboration:
    """The collaboration in a folder; with None, people of the settings are people."""
    return collaboration.open_folder(str(folder), humans)


def spawn(*argv: str | Path, **options: object) -> subprocess.Popen[str]:
    """Start ``acp NAME ...`` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "acp_tui", *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        **options,  # type: ignore[call-overload]
    )


def append(
    folder: Path, who: str, event: str, reply_to: int, summary: str = "Done.", **more: object
) -> Ran:
    """``acp append`` with its usual flags; ``more`` are further ones by name."""
    argv = ["append", "--folder", str(folder), "--participant", who, "--event", event]
    argv += ["--summary", summary, "--reply-to", str(reply_to)]
    for name, value in more.items():
        argv += [f"--{name.replace('_', '-')}", str(value)]
    return acp(*argv)


def block(folder: Path, summary: str = "No budget.", who: str = "reader", **more: object) -> Ran:
    """Append a ``blocked`` event: legal nearly always."""
    return append(folder, who, "blocked", 1, summary, **more)


def log(folder: Path) -> list[dict[str, object]]:
    """The events of the log."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
