"""Starting a governed run in a repository, or bringing one of an earlier version to this one.

A new run gets its configuration, mandates, prompts and planning documents to be filled in; their
names and the headings that gates look for are those of the governed protocol specification, "Files"
and "Phase model", and of the existing program. Where a run is migrated, nothing that is under way
is broken: what bears a schema version keeps it, and no append-only log is rewritten
("Compatibility").
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.own_writes import RUN_HOME as HOME
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.rules.config import unlawful_bindings
from acp_core.protocols.governed.schema import AUTHORITATIVE, LONGEST_GOAL, Object, obj, text
from acp_core.protocols.governed.state import format_time, initial, ledger_line
from acp_core.protocols.governed.write.opened import (
    Opened,
    content,
    hold_files,
    json_document,
    locked,
    log_line,
    refuse_agents,
    write,
)

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
        with hold_files(place) as holder:
            left = holder.recovered
        if left is not None and left.completed and left.what == "init":
            return Started(os.fspath(place), (), (), finished=True)
    files = contents(place, wish, now)  # refuses before anything is made
    with hold_files(place) as holder:
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
    files = {schema.CONFIG: json_document(config)}
    files |= {f".agentxchain/prompts/{role}.md": _prompt(config, role) for role in roles}
    files |= {f".planning/{name}": text.encode() for name, text in PLANNING_TEMPLATES.items()}
    files[schema.TALK] = TALK_TEMPLATE.format(name=config["project"]["name"]).encode()
    files[f"{HOME}/.gitignore"] = IGNORED_FILES.encode()
    for name in (schema.HISTORY, schema.LEDGER):
        files[name] = b""
    files[schema.STATE] = json_document(state)
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


MANDATES = {
    "pm": (
        "Product Manager",
        "Fix the scope, the acceptance criteria and the order of the work.",
        "review_only",
    ),
    "dev": (
        "Developer",
        "Write the code that the plan asks for, and show that it works.",
        "authoritative",
    ),
    "qa": (
        "Quality Assurance",
        "Doubt the implementation: run the tests, look for what they do not cover.",
        "review_only",
    ),
}
"""Title, mandate and write authority of the roles that are known."""

PROMPTS = {
    "pm": (
        "Fill in .planning/ROADMAP.md and .planning/SYSTEM_SPEC.md. Write “Approved: YES” into"
        " .planning/PM_SIGNOFF.md when the plan is complete, and ask for the next phase."
    ),
    "dev": (
        "Write code and tests. Say what you changed and how it was verified in"
        " .planning/IMPLEMENTATION_NOTES.md, and ask for the next phase when it works."
    ),
    "qa": (
        "Fill in .planning/acceptance-matrix.md and .planning/RELEASE_NOTES.md, and give your"
        " verdict in .planning/ship-verdict.md. Ask for completion only when all has passed."
    ),
}

PLANNING_TEMPLATES = {
    "PM_SIGNOFF.md": "# PM Signoff\n\nApproved: NO\n",
    "ROADMAP.md": "# Roadmap\n\n## Phases\n\n| Phase | Goal | Status |\n|---|---|---|\n",
    "SYSTEM_SPEC.md": (
        "# System Spec\n\n## Purpose\n\n(what it is for)\n\n## Interface\n\n(what others use)\n\n"
        "## Acceptance Tests\n\n(what must hold)\n"
    ),
    "IMPLEMENTATION_NOTES.md": (
        "# Implementation Notes\n\n## Changes\n\n(what was changed)\n\n## Verification\n\n"
        "(how it was verified)\n"
    ),
    "acceptance-matrix.md": (
        "# Acceptance Matrix\n\n| Req # | Requirement | Evidence | Status |\n|---|---|---|---|\n"
    ),
    "ship-verdict.md": "# Ship Verdict\n\n## Verdict: PENDING\n",
    "RELEASE_NOTES.md": (
        "# Release Notes\n\n## User Impact\n\n(what users notice)\n\n## Verification Summary\n\n"
        "(what was checked)\n"
    ),
}

TALK_TEMPLATE = "# {name}: talk\n\nHumans and agents write to each other here. Each accepted turn is noted.\n\n---\n"
IGNORED_FILES = "*\n!.gitignore\n!prompts/\n!prompts/**\n!reviews/\n!reviews/**\n"
"""The run's own files stay out of commits, or a checkout would turn the run back."""


def migrate(root: str | Path, by: str, now: datetime) -> tuple[str, ...]:
    """Migrate a run; returns what was done.

    Raises:
        Refused: there is nothing to migrate, or it is of a form that cannot be. Nothing was
            written.
    """
    refuse_agents()
    with locked(root, schema.MIGRATE) as opened:
        done, wanted = plan_migration(opened, by, now)
        write(opened, "migrate", wanted)
        return done


def plan_migration(
    opened: Opened, by: str, now: datetime
) -> tuple[tuple[str, ...], Sequence[Write]]:
    """What migrating does and writes. Writes nothing. Raises as `migrate`."""
    if opened.config.get("version") == 3 or "agents" in opened.config:
        raise Refused("this run has the version 3 format: convert it with `agentxchain migrate`")
    config, state = copy.deepcopy(opened.config), copy.deepcopy(opened.state)
    done = []
    if "schema_version" not in config:
        config = {"schema_version": "1.0", **config}
        done.append(f"{schema.CONFIG}: schema_version 1.0")
    rules = obj(config, "rules")
    if "mandatory_objections" not in rules:
        config["rules"] = {**rules, "mandatory_objections": True}
        done.append(f"{schema.CONFIG}: every role must raise an objection")
    done += _opened_elsewhere(config)
    if state:
        done += _migrated_state(state)
    if not done:
        raise Refused("nothing to migrate")
    record = ledger_line(state, "migrated", format_time(now), by=by, changes=done)
    return tuple(done), [
        Write(opened.root / schema.LEDGER, APPEND, log_line(record)),
        *_changed(opened.root / schema.CONFIG, opened.config, config),
        *_changed(opened.root / schema.STATE, opened.state, state),
    ]


def _opened_elsewhere(config: Object) -> list[str]:
    """Mend what earlier versions of acp wrote and the existing program does not open."""
    done = []
    for name in unlawful_bindings(config):
        config["roles"][name]["write_authority"] = schema.AUTHORITATIVE
        done.append(f"{schema.CONFIG}: {name}, which a local program plays, is authoritative")
    project = obj(config, "project")
    if "goal" in project and not text(project, "goal"):
        del project["goal"]
        done.append(f"{schema.CONFIG}: no empty goal")
    return done


def _migrated_state(state: Object) -> list[str]:
    done = []
    if "schema_version" not in state:
        version = "1.0" if "current_turn" in state else "1.1"
        state["schema_version"] = version
        done.append(f"{schema.STATE}: schema_version {version}")
    if "super_run_id" not in state:
        state["super_run_id"] = None
        done.append(f"{schema.STATE}: may be linked to an initiative")
    return done


def _changed(path: Path, before: Object, after: Object) -> list[Write]:
    return [Write(path, REPLACE, json_document(after))] if before != after else []
