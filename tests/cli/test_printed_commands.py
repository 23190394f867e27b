"""Commands that acp prints: each names all that must be said, and would be accepted as it stands.

The goldens' states are looked at in this process where a command's words are compared with its act,
and by commands in their own processes where it is asked whether what they print is accepted.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.cli.act import spec_of
from acp_core.cli.matters import verdict_command
from acp_core.cli.output import act_command, fitting
from acp_core.diagnosis import actions, cards
from acp_core.fleet import Fleet
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.command import placeholder
from acp_core.protocols.locations import find
from tests.cli.support import Acp
from tests.golden.inputs import words as words_of
from tests.golden.sandbox import Sandbox
from tests.golden.states import all_states
from tests.protocols.folder.support import make_v1

STATES = all_states()
STORIES = (
    "folder/blocked",
    "folder/human-reviews",
    "governed/run-turn-given-out",
    "governed/run-gate-waits",
    "governed/initiative-gate-open",
    "workspaces/partial",
    "cycle/decision_open",
)
"""States in which an act is offered that needs words of a person."""


def printed(fleet: Fleet, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """The acts that are printed for a collaboration, each with its command."""
    for cause in snapshot.causes:
        if cause.remedy:
            yield cause.remedy, act_command(snapshot, cause.remedy, cause.given)
        for other in cause.others:
            yield other, act_command(snapshot, other, fitting(snapshot, other, cause.given))
    for need in snapshot.needs:
        if need.remedy:
            yield need.remedy, act_command(snapshot, need.remedy, need.given)
    now = utc_now()
    for card in fleet.call_sync(snapshot.key, lambda opened: cards.cards(opened, snapshot, now)):
        for number, verdict in enumerate(card.verdicts):
            yield verdict.action, verdict_command(card, number, snapshot)


def wrong(fleet: Fleet, snapshot: Snapshot, name: str, line: str) -> list[str]:
    """What the command of an act leaves out, or asks for although it has a default."""
    try:
        action = fleet.call_sync(
            snapshot.key, lambda opened: actions.action(opened, snapshot, name)
        )
    except Refused:
        return []  # it says by itself what comes first
    words, found = shlex.split(line), []
    for field in spec_of(action).fields if action else ():
        needed = field.required and field.default in (None, "", [], ())
        at = words.index(field.option) + 1 if field.option in words else 0
        value = words[at] if 0 < at < len(words) else ""
        asked = value == placeholder(field) and value.isupper()
        if needed and (not value or value.startswith("--")):
            found.append(f"{field.option} is missing: {line}")
        if asked and field.required and not needed:
            found.append(f"{field.option} has a default: {line}")
    return found


def wrong_in(root: Path) -> list[str]:
    """What is wrong in all commands that are printed for what stands there."""
    fleet, found = Fleet([root], discover=False), []
    try:
        for snapshot in fleet.read():
            for name, line in list(printed(fleet, snapshot)) if find(snapshot.key) else ():
                found += wrong(fleet, snapshot, name, line)
    finally:
        asyncio.run(fleet.close())
    return found


@pytest.mark.parametrize(
    "state",
    [
        *STORIES,
        *(pytest.param(each, marks=pytest.mark.slow) for each in STATES if each not in STORIES),
    ],
)
def test_a_printed_command_names_all_that_its_act_needs(tmp_path: Path, state: str) -> None:
    place = tmp_path / "work"
    place.mkdir()
    assert wrong_in(STATES[state].build(place)) == []


def test_why_says_what_to_write_where_a_blocked_folder_is_continued(acp: Acp) -> None:
    make_v1(acp.home / "cache", "reviewing", blocked="No access to the sandbox")
    lines = [line.strip() for line in acp("why", "cache").stdout.splitlines()]
    at = lines.index("acp act cache continue --answer TEXT")
    assert lines[at + 1] == "you choose TEXT: add --help to see what is possible"
    done = acp("act", "cache", "continue", "--answer", "Use the shared account", "--yes")
    assert done.returncode == 0, done.stderr
    assert (acp.home / "cache-2" / "protocol.json").exists()


SURFACES = ("status", "show", "why", "card", "act", "ps")
_IN_TICKS = re.compile(r"(then )?`(acp [^`]+)`")
_VERBS = (
    "act|why|card|show|status|ps|continue|repair|launch|stop|logs|workspaces|governed|cycle|wire"
)
_OF_ITS_OWN = re.compile(rf"(?:^\s*(?:→|->|or:|command:)?\s*|->\s*|: )(acp (?:{_VERBS}) .*)$")
NAMED_ONLY = {
    "acp repair", "acp continue", "acp append", "acp init", "acp append --review-file",
    "acp append ... --review-file FILE",
}  # fmt: skip
"""Commands that remedies of findings merely name: `acp validate` prints them word for word."""
READ = {"why", "card", "show", "status", "validate", "doctor"}
_MARKED = re.compile(r"(?:[A-Z]+=)?[A-Z][A-Z_,.]+")


def strings(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a JSON value, with the name of its field."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from strings(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each, name)
    elif isinstance(value, str):
        yield name, value


def in_text(text: str) -> Iterator[str]:
    """The commands in back-ticks that can be run now: not those that come after something else."""
    for later, command in _IN_TICKS.findall(text):
        if not later and command not in NAMED_ONLY:
            yield command


def in_lines(text: str) -> Iterator[str]:
    """The commands in what was printed for people."""
    for line in text.splitlines():
        yield from in_text(line)
        own = _OF_ITS_OWN.search(line)
        if own and "`" not in line and " — " not in line:
            yield own[1].removesuffix(".")


def in_json(text: str) -> Iterator[str]:
    """The commands in what was printed for programs."""
    for name, each in strings(json.loads(text)):
        yield from in_text(each)
        if name == "command" and each.startswith("acp "):
            yield each


def printed_by(sandbox: Sandbox, folder: str) -> dict[str, str]:
    """Every command that is printed for a collaboration, with the surface that prints it first."""
    found: dict[str, str] = {}
    for surface in SURFACES:
        words = (surface,) if surface == "ps" else (surface, folder)
        told = sandbox.acp(*words)
        for command in in_lines(told.stdout + told.stderr):
            found.setdefault(command, surface)
        told = sandbox.acp(*words, "--json")
        for command in in_json(told.stdout) if told.stdout else ():
            found.setdefault(command, f"{surface} --json")
    return found


def refusal(sandbox: Sandbox, command: str) -> str:
    """Why a printed command is not accepted now; "" where it is, or where a person must fill it in."""
    words = shlex.split(command)[1:]
    if words[-1] == "--help":
        return ""
    ended = sandbox.acp(*words, *(() if words[0] in READ else ("--dry-run",)))
    said = ended.stderr.strip() or ended.stdout.strip()
    refused = ended.stderr.startswith("error: ") or "\nrefused: " in f"\n{ended.stdout}"
    if not refused:  # whether something waits, or would change
        return ""
    if any(_MARKED.fullmatch(word) for word in words):
        wrong = ("unrecognized arguments", "is not possible", "is missing", "unknown command")
        return said if any(each in said for each in wrong) else ""
    return said


def with_agents(sandbox: Sandbox) -> Sandbox:
    """The sandbox on a machine on which an agent's program is installed."""
    program = sandbox.root.parent / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 2.1.0\n")
    program.chmod(0o755)
    sandbox.env["PATH"] = f"{program.parent}:{sandbox.env['PATH']}"
    return sandbox


def not_accepted(sandbox: Sandbox, folder: str, more: str = "") -> list[str]:
    """What is printed and not accepted, each with why."""
    outcome = "\n".join(line for line in more.splitlines() if not line.startswith("runs: "))
    commands = printed_by(sandbox, folder) | dict.fromkeys(in_lines(outcome), "outcome")
    return [
        f"{surface}: {command}: {why}"
        for command, surface in commands.items()
        if (why := refusal(sandbox, command))
    ]


NOT_TYPED = {"cycle/hostile", "workspaces/hostile"}
"""States whose names are no words that anybody could type."""
OUTSIDE = {"workspaces/input_missing"}
"""What is missing there lies outside the run, where nobody looks until somebody dispatches."""
UNTRIED = NOT_TYPED | OUTSIDE
ACCEPTED = [
    "folder/blocked", "folder/gap", "workspaces/to_run_again", "governed/run-turn-staged", "cycle/torn_state",
]  # fmt: skip
SEED = 34


@pytest.mark.parametrize(
    "state",
    [
        *ACCEPTED,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in STATES
            if each not in ACCEPTED and each not in UNTRIED
        ),
    ],
)
def test_every_printed_command_would_be_accepted(tmp_path: Path, state: str) -> None:
    sandbox = with_agents(Sandbox(tmp_path / "sandbox"))
    folder = str(STATES[state].build(sandbox.work))
    assert not_accepted(sandbox, folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(30))
def test_every_printed_command_would_be_accepted_after_random_acts(
    tmp_path: Path, number: int
) -> None:
    chance = random.Random(SEED * 1000 + number)
    name = chance.choice(sorted(set(STATES) - UNTRIED))
    sandbox = with_agents(Sandbox(tmp_path / "sandbox"))
    folder, done = str(STATES[name].build(sandbox.work)), [f"seed {SEED}", name]
    for _ in range(3):
        listed = json.loads(sandbox.acp("act", folder, "--json").stdout or "{}")
        acts = [
            each
            for each in listed.get("actions", ())
            if not each["personal"] and each["name"] not in STARTING
        ]
        if not acts:
            break
        act = chance.choice(acts)
        given = words_of(act["inputs"], act["defaults"])
        ended = sandbox.acp("act", folder, act["name"], *given, "--yes")
        sandbox.end_what_runs()
        done.append(act["name"])
        assert not_accepted(sandbox, folder, ended.stdout + ended.stderr) == [], done


STARTING = {
    "launch",
    "launch_all",
    "dispatch",
    "run",
    "coordinate",
    "synthesise",
    "resume",
    "rerun",
    "extend",
}
"""Acts that start programs which go on."""
