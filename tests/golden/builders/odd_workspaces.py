"""Runs of sub-agents with files that contradict, are damaged or are written to do harm."""

from __future__ import annotations

import os
from pathlib import Path

from tests.golden.builders.workspaces import (
    BASE,
    COORD,
    compared,
    conflict,
    decide,
    ended,
    manifest,
    put,
    ran,
    result,
    returned,
    status,
)

HOSTILE = "\x1b]0;title\x07\x1b[31mred\u202e[bold]right[/]\u2028\u200b\U000e0041 --yes `rm`"


def contradicting(root: Path) -> Path:
    """Two status files that differ, a return that differs, an output of another, one not there."""
    made = ran(root, ann="success", ben="success", cat="success")
    put(root, f"{BASE}/ann/ann-status.json", status(root, "ann", "failure"), 10)
    put(root, f"{COORD}/returns/ben-part.json", returned(root, "ben", "partial"), 11)
    item = {"file": str(root / BASE / "ann/output.md"), "size_estimate": "huge", "description": ""}
    gone = {"file": str(root / BASE / "cat/appendix.md")}
    value = status(root, "cat", agent="dan", outputs=[item, gone])
    put(root, f"{BASE}/cat/status.json", value, 10)
    return made


def torn_manifest(root: Path) -> Path:
    """The manifest ends in the middle."""
    made = ran(root, ann="success", ben="partial")
    path = root / COORD / "manifest.json"
    put(root, f"{COORD}/manifest.json", path.read_bytes()[:700], 12)
    return made


def wrong_manifest(root: Path) -> Path:
    """The manifest is JSON, and names one agent twice."""
    made = ran(root, ann="success")
    manifest(root, ended(root, "ann"), ended(root, "ann", attempt="second"))
    return made


def torn_status(root: Path) -> Path:
    """A status file ends in the middle, another one is a list."""
    made = ran(root, ann="success", ben="success")
    put(root, f"{BASE}/ann/status.json", '{"agent": "ann", "status": "succ', 10)
    put(root, f"{BASE}/ben/status.json", ["success"], 10)
    return made


def unreadable_decisions(root: Path) -> Path:
    """What was decided and what was found to conflict is no JSON."""
    made = ran(root, ann="success", ben="partial")
    put(root, f"{COORD}/triage.json", "{", 20)
    put(root, f"{COORD}/conflicts.json", b"\xff\xfe\x00", 22)
    return made


def symbolic_links(root: Path) -> Path:
    """An output leads outside of the run, and so does a workspace."""
    made = ran(root, ann="success", ben="success")
    secret = put(root.parent, "outside/secret.md", "Secret.\n")
    output = root / BASE / "ann/output.md"
    output.unlink()
    output.symlink_to(secret)
    at = secret.stat().st_mtime
    os.utime(output, (at, at), follow_symlinks=False)
    (root / BASE / "dan").symlink_to(secret.parent)
    return made


def hostile(root: Path) -> Path:
    """Text that would do something to a terminal, in every place where text can stand."""
    name = "e\u202eve\x1b[2J"
    result(root, "ann", "partial", f"# {HOSTILE}\n\n{HOSTILE}\n")
    put(root, f"{BASE}/{name}/{HOSTILE[:9]}.md", HOSTILE, 9)
    put(root, f"{BASE}/{name}/status.json", status(root, name, HOSTILE, task_id=HOSTILE), 10)
    said = returned(root, "ann", "partial", summary=HOSTILE, errors=[HOSTILE], notes=HOSTILE)
    put(root, f"{COORD}/returns/ann-part.json", said, 11)
    decide(root, ann=HOSTILE)
    compared(root, conflict(root, HOSTILE, "ann", name, topic=HOSTILE, why=HOSTILE))
    return manifest(root, ended(root, "ann", exit=HOSTILE, outside=[HOSTILE]), task=HOSTILE)
