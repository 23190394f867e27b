"""Starting a governed run in a repository: its configuration, roles, prompts and documents.

Source: governed protocol specification, "Files" and "Phase model".
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.transaction import REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.own_writes import RUN_HOME as HOME
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.schema import AUTHORITATIVE, LONGEST_GOAL, Object
from acp_core.protocols.governed.state import format_time, initial
from acp_core.protocols.governed.write.journal import document, held
from acp_core.protocols.governed.write.opened import content
from acp_core.protocols.governed.write.templates import IGNORE, MANDATES, PLANNING, PROMPTS, TALK

_ID = re.compile(r"[a-z0-9_-]+\Z")
_PHASE = re.compile(r"[a-z][a-z0-9_-]*\Z")
PHASES = (("planning", "pm"), ("implementation", "dev"), ("verification", "qa"))


class Wish(NamedTuple):
    """What a new run is to be.

    ``phases`` are pairs of a phase and the role that begins it, in order. ``agents`` are command
    lines by role; a role without one is played by a human (manual runtime). ``super_run_id``
    links it to an initiative, ``barriers`` maps a phase to the barrier at which it ends.
    """

    name: str = ""
    goal: str = ""
    phases: tuple[tuple[str, str], ...] = PHASES
    agents: Mapping[str, str] = {}
    super_run_id: str | None = None
    barriers: Mapping[str, str] = {}


class Started(NamedTuple):
    """A run that stands in ``root``: which files were made, and which were there already.

    ``finished``: an earlier start was killed, and that one is complete now.
    """

    root: str
    created: tuple[str, ...]
    existing: tuple[str, ...]
    finished: bool = False


def initialise(root: str | Path, wish: Wish, now: datetime) -> Started:
    """Start a run: write its configuration, prompts, planning documents, TALK.md and state.

    Documents that are there already are kept.

    Raises:
        Refused: there is a run already, or the wish cannot be fulfilled. Nothing was written.
    """
    place = Path(os.path.abspath(root))
    if place.exists() and not place.is_dir():
        raise Refused(f"{root} is not a folder")
    if (place / HOME).is_symlink():
        raise Refused(f"{HOME} is a symbolic link: acp does not write through links")
    if interrupted(place) is not None:
        with held(place) as holder:
            left = holder.recovered
        if left is not None and left.completed and left.what == "init":
            return Started(os.fspath(place), (), (), finished=True)
    files = contents(place, wish, now)  # refuses before anything is made
    with held(place) as holder:
        _must_be_new(place)
        existing = tuple(name for name in files if content(place, name) is not None)
        made = {name: data for name, data in files.items() if name not in existing}
        holder.commit("init", [Write(place / name, REPLACE, data) for name, data in made.items()])
    return Started(os.fspath(place), tuple(made), existing)


def contents(place: Path, wish: Wish, now: datetime) -> dict[str, bytes]:
    """The files of the new run, the state last. Writes nothing.

    Raises:
        Refused: there is a run already, or the wish cannot be fulfilled.
    """
    _must_be_new(place)
    config = configuration(place, wish)
    state = initial(config, format_time(now), super_run_id=wish.super_run_id)
    if wish.barriers:
        state["barriers"] = dict(wish.barriers)
    roles = list(config["roles"])
    files = {schema.CONFIG: document(config)}
    files |= {f".agentxchain/prompts/{role}.md": _prompt(config, role) for role in roles}
    files |= {f".planning/{name}": text.encode() for name, text in PLANNING.items()}
    files[schema.TALK] = TALK.format(name=config["project"]["name"]).encode()
    files[f"{HOME}/.gitignore"] = IGNORE.encode()
    for name in (schema.HISTORY, schema.LEDGER):
        files[name] = b""
    files[schema.STATE] = document(state)
    return files


def _must_be_new(place: Path) -> None:
    for name in (schema.CONFIG, schema.STATE):
        if os.path.lexists(place / name):
            raise Refused(f"{place} already contains a governed run ({name})")


def configuration(place: Path, wish: Wish) -> Object:
    """The configuration of a new run.

    The existing program opens it, too: it binds no role that only reviews to a local program,
    and takes no empty goal.

    Raises:
        Refused: a phase, a role or an agent's command line is not sound.
    """
    name = " ".join(wish.name.split()) or place.name or "project"
    if len(wish.goal) > LONGEST_GOAL:
        raise Refused(f"the goal is longer than {LONGEST_GOAL} characters")
    _check(wish)
    roles: Object = {}
    runtimes: Object = {}
    for role in dict.fromkeys(role for _, role in wish.phases):
        title, mandate, authority = MANDATES.get(role, (role, "Do the work.", AUTHORITATIVE))
        kind = "local" if role in wish.agents else "manual"
        runtime = f"{kind}-{role}"
        runtimes[runtime] = _runtime(role, wish.agents.get(role))
        roles[role] = {
            "title": title,
            "mandate": mandate,
            "write_authority": AUTHORITATIVE if role in wish.agents else authority,
            "runtime": runtime,
        }
    order = [phase for phase, _ in wish.phases]
    return {
        "schema_version": "1.0",
        "project": {
            "id": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "project",
            "name": name,
            **({"goal": wish.goal} if wish.goal.strip() else {}),
            "default_branch": _branch(place),
        },
        "roles": roles,
        "runtimes": runtimes,
        "routing": {
            phase: {
                "entry_role": role,
                "allowed_next_roles": [*roles, "human"],
                "exit_gate": _gate(phase),
                "max_concurrent_turns": 1,
            }
            for phase, role in wish.phases
        },
        "gates": {_gate(phase): _demands(phase, last=phase == order[-1]) for phase in order},
        "prompts": {role: f".agentxchain/prompts/{role}.md" for role in roles},
        "rules": {
            "challenge_required": True,
            "mandatory_objections": True,
            "max_turn_retries": 2,
        },
        "retention": {
            "talk_strategy": "append_only",
            "history_strategy": "jsonl_append_only",
        },
    }


def agents_of(given: Iterable[str]) -> dict[str, str]:
    """Command lines by role, of texts like ``dev=program --option``.

    Raises:
        Refused: one is not written as ROLE=COMMAND, or a role is named twice.
    """
    agents: dict[str, str] = {}
    for each in given:
        role, sign, command = (part.strip() for part in each.partition("="))
        if not sign or not role or not command:
            raise Refused(f"{each!r}: an agent must be ROLE=COMMAND")
        if role in agents:
            raise Refused(f"the role {role} has two agents")
        agents[role] = command
    return agents


def _check(wish: Wish) -> None:
    phases = [phase for phase, _ in wish.phases]
    if not phases:
        raise Refused("a run needs a phase")
    for phase, role in wish.phases:
        if not _PHASE.match(phase):
            raise Refused(f"{phase!r} is not a valid phase name: use a-z, then a-z, 0-9, _ and -")
        if not _ID.match(role) or role == "human":
            raise Refused(f"{role!r} is not a valid role name: use a-z, 0-9, _ and - (not human)")
    twice = next((phase for phase in phases if phases.count(phase) > 1), None)
    if twice:
        raise Refused(f"the phase {twice} is named twice")
    roles = {role for _, role in wish.phases}
    for role in wish.agents:
        if role not in roles:
            raise Refused(f"no role {role!r} for the agent; roles: {', '.join(sorted(roles))}")
    for phase in wish.barriers:
        if phase not in phases:
            raise Refused(f"a barrier names the phase {phase!r}, which the run does not have")


def _runtime(role: str, command: str | None) -> Object:
    if command is None:
        return {"type": "manual"}
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(f"the command line of {role} cannot be parsed: {error}") from None
    if not words:
        raise Refused(f"the command line of {role} is empty")
    how = "argv" if any("{prompt}" in word for word in words) else "stdin"
    return {"type": "local_cli", "command": words[0], "args": words[1:], "prompt_transport": how}


def _gate(phase: str) -> str:
    known = {"planning": "planning_signoff", "implementation": "implementation_complete"}
    return known.get(
        phase, "verification_ship_verdict" if phase == "verification" else f"{phase}_done"
    )


def _demands(phase: str, *, last: bool) -> Object:
    files = {
        "planning": ["PM_SIGNOFF.md", "ROADMAP.md", "SYSTEM_SPEC.md"],
        "implementation": ["IMPLEMENTATION_NOTES.md"],
        "verification": ["acceptance-matrix.md", "ship-verdict.md", "RELEASE_NOTES.md"],
    }.get(phase, [])
    demands: Object = {
        "requires_files": [f".planning/{name}" for name in files],
        "requires_human_approval": True,
    }
    if last or phase == "implementation":
        demands["requires_verification_pass"] = True
    return demands


def _branch(place: Path) -> str:
    """The branch that is checked out, as git's own file says; "main" where it says none."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        head = (place / ".git/HEAD").read_bytes()[:500].decode()
        if head.startswith("ref: refs/heads/"):
            return head.removeprefix("ref: refs/heads/").strip()
    return "main"


def _prompt(config: Object, role: str) -> bytes:
    described = config["roles"][role]
    text = PROMPTS.get(role, "Take your turn as PROMPT.md describes it.")
    return f"# {described['title']}\n\n{described['mandate']}\n\n{text}\n".encode()
