"""What `acp` says of a state, what every action in it would do, and what it writes."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden import brief
from tests.golden.inputs import words
from tests.golden.normal import Normal, by_place
from tests.golden.sandbox import Sandbox, fixed_place, written
from tests.golden.state import State

DATA = Path(__file__).parent / "data"
ASKED = ("status", "show", "why", "card", "validate", "stats", "act")
WIDTH = 110
STARTS = "it starts a program that goes on"

Captured = dict[str, Any]
_Ended = subprocess.CompletedProcess[str]


def captured(name: str, state: State) -> Captured:
    """Everything that is kept of a state, normalised, made in a folder of its own."""
    with fixed_place(name) as place:
        return _Capture(state, place / "sandbox").everything()


def as_text(golden: Captured) -> str:
    """A golden as its file holds it."""
    return _lines(golden, 0) + "\n"


def _lines(value: Any, depth: int) -> str:
    """JSON, sorted, with what fits on one line."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if depth + len(line) <= WIDTH or not isinstance(value, dict | list):
        return line
    inner, end = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, list):
        return "[" + ",".join(inner + _lines(each, depth + 1) for each in value) + end + "]"
    items = (
        f"{inner}{json.dumps(name, ensure_ascii=False)}: {_lines(value[name], depth + 1)}"
        for name in sorted(value)
    )
    return "{" + ",".join(items) + end + "}"


class _Capture:
    def __init__(self, state: State, root: Path) -> None:
        self._state, self._sandbox = state, Sandbox(root)
        self._folder = str(state.build(self._sandbox.work))
        self._sandbox.keep()
        self._sandbox.restore()
        self._before = self._sandbox.tree()
        roots = {str(self._sandbox.root): "<sandbox>", str(Path(__file__).parents[2]): "<source>"}
        self._normal = Normal(roots, _version(), self._before, live=state.live)

    def everything(self) -> Captured:
        asked = {name: self._printed(self._acp(name, self._folder, "--json")) for name in ASKED}
        report = self._acp("report", "--format", "json", self._folder)
        actions = dict(self._actions())
        _leave_out_notes(asked["act"])
        return {
            "faults": list(self._state.faults),
            "printed": brief.printed(asked | {"report": self._printed(report)}),
            "actions": actions,
            "unperformed": _unperformed(actions),
        }

    def _actions(self) -> Iterator[tuple[str, Captured]]:
        listed = self._acp("act", self._folder, "--json")
        actions = json.loads(listed.stdout).get("actions", []) if listed.stdout else []
        for action in actions:
            if not action["personal"]:
                yield action["name"], self._action(action)

    def _action(self, action: dict[str, Any]) -> Captured:
        name, given = action["name"], words(action["inputs"], action["defaults"])
        command = ("act", self._folder, name, *given)
        self._sandbox.restore()
        dry = self._acp(*command, "--dry-run", "--json")
        captured = {"given": self._normal.value(given), "preview": self._printed(dry)}
        captured |= self._touched("written by looking")
        reason = dict(self._state.unperformed).get(name) or _starts(name, dry.stdout)
        captured |= {"not performed": reason} if reason else self._performed(command)
        return brief.action(captured, name, self._normal.text(self._folder))

    def _performed(self, command: tuple[str, ...]) -> Captured:
        self._sandbox.restore()
        ended = self._acp(*command, "--yes", "--json")
        assert not (left := self._sandbox.end_what_runs()), f"{command} left running: {left}"
        self._normal.learn(self._sandbox.tree())
        return {"performed": self._printed(ended)} | self._touched("written")

    def _touched(self, name: str) -> Captured:
        """What lies here otherwise than before."""
        changes = written(self._before, self._sandbox.tree())
        in_order = {path: changes[path] for path in sorted(changes, key=by_place)}
        return {name: self._normal.value(in_order)} if changes else {}

    def _acp(self, *arguments: str) -> _Ended:
        return self._sandbox.acp(*arguments)

    def _printed(self, ended: _Ended) -> Captured:
        """Exit code and output; as JSON where it is JSON, else as lines."""
        try:
            read = json.loads(ended.stdout)
            if isinstance(read, dict) and isinstance(read.get("card"), dict):
                read["card"] = read["card"]["id"]  # the whole of it is what `acp card` prints
            out = self._normal.value(read)
        except ValueError:
            out = self._normal.text(ended.stdout).splitlines()
        printed: Captured = {"exit": ended.returncode, "out": out}
        if ended.stderr:
            printed["err"] = self._normal.text(ended.stderr).splitlines()
        return printed


def _leave_out_notes(listed: Captured) -> None:
    """A person's own notes are the same in every state, and touch none: tests/tui/test_one_act.py."""
    if isinstance(listed["out"], dict) and "actions" in listed["out"]:
        found = listed["out"]["actions"]
        listed["out"]["actions"] = [each for each in found if not each.pop("personal")]


def _starts(name: str, printed: str) -> str:
    """Why this is not performed, by its name and preview; empty: it is."""
    preview = (json.loads(printed) if printed else {}).get("preview") or {}
    verbs = {change.get("verb") for change in preview.get("changes", [])}
    words = preview.get("command") or ["acp"]
    going_on = name.startswith("launch") or "start" in verbs or words[0] != "acp"
    return STARTS if going_on and not preview.get("refused") else ""


def _unperformed(actions: dict[str, Captured]) -> dict[str, str]:
    return {name: a["not performed"] for name, a in actions.items() if "not performed" in a}


@cache
def _version() -> str:
    with tempfile.TemporaryDirectory() as place:
        return Sandbox(Path(place) / "sandbox").acp("--version").stdout.split()[-1]
