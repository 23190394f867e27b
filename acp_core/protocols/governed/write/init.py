"""Starting a governed run in a repository or an initiative over several; bringing a run to this version.

A new run gets its configuration, mandates, prompts and planning documents to be filled in; their
names and the headings that gates look for are those of the governed protocol specification, "Files"
and "Phase model", and of the existing program. Where a run is migrated, nothing that is under way
is broken: what bears a schema version keeps it, and no append-only log is rewritten
("Compatibility").

An initiative gets its configuration, its repositories, a run in each, and the coordinator's files.
Whatever that is interrupted at, starting again goes on. Repositories that are not there are cloned:
git is run with a list of arguments, asks nobody anything, runs no hook and follows no helper that
an address could name. Source: "How it works", "Coordinator config" and "File layout".
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, git
from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import Plan, Stream, Workstream, plan_of, read_plan
from acp_core.protocols.governed.read.own_writes import RUN_HOME as HOME
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.read.run import Run, read_run
from acp_core.protocols.governed.rules.config import unlawful_bindings
from acp_core.protocols.governed.rules.initiatives import record, unreached
from acp_core.protocols.governed.schema import (
    AUTHORITATIVE,
    LONGEST_GOAL,
    Object,
    StreamRecord,
    obj,
    text,
)
from acp_core.protocols.governed.state import Move, begun, copied, format_time, initial, ledger_line
from acp_core.protocols.governed.write import hooks, initiative_opened, opened
from acp_core.protocols.governed.write.initiative_opened import (
    LEDGER,
    STATE,
    Writes,
    open_initiative,
)
from acp_core.protocols.governed.write.opened import (
    Opened,
    RunPlan,
    content,
    hold_files,
    json_document,
    log_line,
    who,
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


def migrating(opened: Opened, by: str, now: datetime) -> RunPlan:
    """Migrate a run.

    Raises:
        Refused: there is nothing to migrate, or it is of a form that cannot be.
    """
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
    steps = "; ".join(done)
    record = ledger_line(state, "migrated", format_time(now), by=who(by), changes=done)
    wanted = [
        Write(opened.root / schema.LEDGER, APPEND, log_line(record)),
        *_changed(opened.root / schema.CONFIG, opened.config, config),
        *_changed(opened.root / schema.STATE, opened.state, state),
    ]
    after = {"steps": tuple(done)}
    return RunPlan(
        "migrate", f"Migrate: {steps}.", f"Migrated: {steps}.", writes=wanted, after=after
    )


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


_NOBODY: Mapping[str, str] = {}  # people take all turns


class Source(NamedTuple):
    """Where a workstream's repository is: ``folder`` relative to the initiative.

    ``address`` is what has to be cloned, "" where the repository is there.
    """

    stream: Stream
    folder: str
    address: str


class NewInitiative(NamedTuple):
    """What starting will do, before it does it."""

    root: Path
    plan: Plan
    sources: tuple[Source, ...]
    messages: tuple[str, ...]
    warnings: tuple[str, ...]


def prepare(
    root: Path, agents: Mapping[str, str] = _NOBODY, plan: Plan | None = None
) -> NewInitiative:
    """What starting the initiative in ``root`` will do. Runs git only to ask for branches.

    ``agents`` are command lines by role, for the runs that do not have a configuration yet;
    ``plan`` is what the configuration will say, where it is not written yet.

    Raises:
        Refused: it was begun already, or something stands in the way.
    """
    plan = plan or read_plan(root)
    configuration(root, Wish(agents=agents))  # refuses unsound ones before anything is cloned
    if own_writes.interrupted(root, own_writes.COORDINATOR_HOME):
        return NewInitiative(root, plan, (), ("finish the interrupted start",), ())
    if (root / STATE).exists():
        raise Refused(f"{root} is already started: see acp governed coordinator status")
    if schema.read_log(root / LEDGER).lines:
        cure = f"acp governed coordinator mend-state {shlex.quote(str(root))}"
        raise Refused(f"{root} is started, but its state is lost: {cure}")
    sources = tuple(_source(root, stream) for stream in plan.streams)
    steps, warnings, used = [], [], False
    for source in sources:
        name, branch = source.stream.name, source.stream.branch
        if source.address:
            on = f", branch {branch}" if branch else ""
            steps.append(
                f"clone {initiative_opened._bare(source.address)}{on} into {source.folder}"
            )
            used = True  # unless what is cloned has its own configuration
            continue
        steps.append(f"use the repository in {source.folder} as {name}")
        run = read_run(_home(root, source), Path(source.stream.config_path).name)
        _check_branch(root, source)
        used = used or run.config.missing
        steps.append(_about(run, plan, name, agents))
    if agents and not used:
        warnings.append("every workstream has its own configuration: acp ignores the agents")
    for hook in plan.hooks:
        there = hooks.script_digest(root, hook.path)
        steps.append(f"allow {hook.path}: {hook.name}") if there else warnings.append(
            f"{hook.name}: the script {hook.path} does not exist yet; allow it later: acp governed coordinator trust"
        )
    return NewInitiative(root, plan, sources, tuple(steps), tuple(warnings))


def create(
    initiative: NewInitiative, by: str, now: datetime, agents: Mapping[str, str] = _NOBODY
) -> tuple[str, ...]:
    """Start the initiative; returns what was done, in sentences. ``agents`` as for `prepare`.

    Raises:
        Refused: it was begun meanwhile, or a repository cannot be cloned or has no proper configuration.
            What was cloned stays; starting again goes on.
    """
    root, plan, steps = initiative.root, initiative.plan, []
    hooks.trust_scripts(root, tuple(hook.path for hook in plan.hooks))
    if not initiative.sources:
        return _finished(root)
    for source in initiative.sources:
        sweep_clones(root, source.folder)
        if source.address:
            target = root / source.folder
            atomic.shared_folder(target.parent)
            clone(source.address, source.stream.branch, target)
            steps.append(f"cloned {source.stream.name}")
        _check_branch(root, source)
        if _scaffold(root, source, plan, agents, now):
            steps.append(f"started a governed run in {source.folder}: review its {schema.CONFIG}")
    runs = {s.stream.name: _readable_run(root, s, plan) for s in initiative.sources}
    homes = [os.path.relpath(run.root / own_writes.RUN_HOME, root) for run in runs.values()]
    for run in runs.values():
        atomic.shared_folder(run.root / own_writes.RUN_HOME)
    with opened.hold_files(root, own_writes.COORDINATOR_HOME, homes) as holder:
        if (root / STATE).exists():
            raise Refused(f"{root} is already started: see acp governed coordinator status")
        runs = {s.stream.name: _readable_run(root, s, plan) for s in initiative.sources}
        holder.commit("start the initiative", _writes(initiative, runs, by, now).all())
        initiative_opened.write_context(open_initiative(root))
    steps += [f"{name}: {_sentence(read_run(run.root))}" for name, run in runs.items()]
    return tuple(steps)


def _finished(root: Path) -> tuple[str, ...]:
    with opened.hold_files(root, own_writes.COORDINATOR_HOME) as holder:
        if not (root / STATE).exists():
            reason = holder.recovered.reason if holder.recovered else ""
            raise Refused(f"the start failed and was rolled back: {reason}")
        initiative_opened.write_context(open_initiative(root))
    return ("finished the start that was interrupted",)


def _source(root: Path, stream: Stream) -> Source:
    local = repository_within(root, stream.repo)
    folder = local or stream.name
    place = schema.inside(root, folder)
    if place is None or place == root:
        raise Refused(f"workstream {stream.name}: {folder} leads out of the initiative")
    if place.exists():
        if not place.is_dir() or not git.is_repository(place):
            raise Refused(f"workstream {stream.name}: {folder} exists but is not a git repository")
        return Source(stream, folder, "")
    try:
        return Source(stream, folder, repository_address(root, stream.repo))
    except Refused as error:
        raise Refused(f"workstream {stream.name}: {error}") from None


def _home(root: Path, source: Source) -> Path:
    home = schema.inside(root / source.folder, source.stream.run)
    if home is None:
        raise Refused(f"workstream {source.stream.name}: config_path leads out of its repository")
    return home


def _check_branch(root: Path, source: Source) -> None:
    wanted, folder = source.stream.branch, root / source.folder
    if not wanted:
        return
    on = branch_of(folder)
    if on != wanted:
        steps = f"on branch {on}" if on else "on no branch"
        raise Refused(
            f"workstream {source.stream.name}: {source.folder} is {steps} instead of {wanted}: "
            f"git -C {source.folder} switch {wanted}"
        )


def _scaffold(
    root: Path, source: Source, plan: Plan, agents: Mapping[str, str], now: datetime
) -> bool:
    """Give a repository without a configuration one; people play the roles without an agent."""
    home = _home(root, source)
    if (home / source.stream.config_path).exists() or source.stream.config_path != schema.CONFIG:
        return False
    goal = plan.description[:500]
    wish = Wish(source.stream.name, goal, agents=agents, barriers=plan.by_phase())
    initialise(home, wish, now)
    return True


def _readable_run(root: Path, source: Source, plan: Plan) -> Run:
    """The run of a workstream as it can be linked.

    Raises:
        Refused: its files do not allow it.
    """
    name = source.stream.name
    run = read_run(_home(root, source), Path(source.stream.config_path).name)
    if run.config.missing:
        raise Refused(f"workstream {name}: {source.folder} has no {source.stream.config_path}")
    if run.config.reason:
        raise Refused(f"workstream {name}: {source.stream.config_path} {run.config.reason}")
    if run.state.reason and not run.state.missing:
        raise Refused(f"workstream {name}: {schema.STATE} {run.state.reason}: repair it first")
    _about(run, plan, name)
    return run


def _about(run: Run, plan: Plan, name: str, agents: Mapping[str, str] = _NOBODY) -> str:
    """What happens to a workstream's run.

    Raises:
        Refused: its phases do not have the barriers', it is over, or of another initiative.
    """
    if run.config.missing:
        played = "".join(f"; {command} plays {role}" for role, command in agents.items())
        return f"{name}: start a governed run there, with the usual roles{played}"
    if run.config.reason:
        return f"{name}: {run.config.reason}"
    for barrier in plan.barriers:
        if barrier.phase not in run.phases:
            known = ", ".join(run.phases)
            raise Refused(
                f"workstream {name} has no phase {barrier.phase} for the barrier {barrier.name}; "
                f"its phases: {known}"
            )
    state = run.state.value
    other = text(state, "super_run_id", 120)
    if other and other != plan.super_run_id:
        raise Refused(f"workstream {name} belongs to the initiative {other}")
    if run.status in ("completed", "failed"):
        raise Refused(f"workstream {name}: its run is {run.status}; start another run there first")
    if run.status in ("absent", "idle"):
        return f"{name}: start a run in {run.phases[0]}"
    phase = run.phases.index(run.phase) if run.phase in run.phases else -1
    passed = [b.name for b in plan.barriers if run.phases.index(b.phase) < phase]
    if passed:
        raise Refused(f"workstream {name} is already in {run.phase}, past {', '.join(passed)}")
    return f"{name}: link its run, which is in {run.phase}"


def _writes(initiative: NewInitiative, runs: dict[str, Run], by: str, now: datetime) -> Writes:
    plan, at, root = initiative.plan, format_time(now), initiative.root
    run_id = plan.super_run_id or f"super_run_{secrets.token_hex(6)}"
    writes, lines, records = Writes(root, at, run_id), [], {}
    for source in initiative.sources:
        name, run = source.stream.name, runs[source.stream.name]
        change = _linked(run, run_id, plan, at, head_of(root / source.folder))
        stream = Workstream(name, str(run.root), run, StreamRecord(source.folder))
        writes.run(stream, change)
        begun = replace(run, state=run.state._replace(value=change.state, reason="", missing=False))
        records[name] = record(stream._replace(run=begun))
        lines.append(
            {"type": "workstream_linked", "workstream": name, "path": source.folder,
             "run_id": change.state["run_id"], "phase": change.state["phase"]}
        )  # fmt: skip
    writes.state(
        {
            "schema_version": "1.0",
            "super_run_id": run_id,
            "status": "active",
            "barriers": {barrier.name: unreached(barrier.phase) for barrier in plan.barriers},
            "workstreams": records,
            "updated_at": at,
        }
    )
    first: Object = {"type": "initiative_started", "by": by, "description": plan.description}
    writes.ledger(first, *lines)
    return writes


def _linked(run: Run, run_id: str, plan: Plan, at: str, head: str) -> Move:
    """The run with the initiative's id and its barriers; one that has not begun begins."""
    linked: Object = {"super_run_id": run_id, "barriers": plan.by_phase()}
    if run.status not in ("absent", "idle"):
        return Move(copied(run.state.value) | linked)
    state = run.state.value or initial(run.config.value, at)
    if head:
        linked["accepted_integration_ref"] = f"git:{head}"
    return begun(state | linked, f"run_{secrets.token_hex(8)}", at)


def _sentence(run: Run) -> str:
    return f"run {run.record.run_id} is {run.status} in {run.phase}"


DEFAULT_BARRIERS = ("planning-sync=planning", "verification-sync=verification")

"""The barriers of an initiative for which none are named: before building, and before shipping."""

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)\Z", re.DOTALL)


class InitiativeWish(NamedTuple):
    """What a new initiative is to be.

    ``repositories`` are texts like ``web=git@example.org:team/web.git#branch``: the name and the
    branch may be left out. ``barriers`` are texts like ``planning-sync=planning``.
    """

    repositories: Sequence[str]
    barriers: Sequence[str] = DEFAULT_BARRIERS
    description: str = ""


def initiative_configuration(wish: InitiativeWish) -> Object:
    """The configuration of a new initiative.

    Raises:
        Refused: something in it is not sound: what, in a line.
    """
    config: Object = {
        "schema_version": "1.0",
        "super_run_id": f"super_run_{secrets.token_hex(6)}",
        "description": " ".join(wish.description.split()),
        "workstreams": [_stream(text.strip()) for text in wish.repositories],
        "barriers": list(_barriers(wish.barriers)),
        "context_generation": {
            "enabled": True,
            "output_dir": ".coordinator/context/",
            "include_decisions": True,
            "include_objections": True,
            "include_file_summaries": True,
        },
    }
    plan_of(config)
    return config


def planned_initiative(root: Path, wish: InitiativeWish) -> tuple[Object, Plan]:
    """The configuration and what it says. Writes nothing.

    Raises:
        Refused: as `configuration`, or there is one already.
    """
    if (root / schema.MULTI_CONFIG).exists():
        raise Refused(f"{root / schema.MULTI_CONFIG} already exists: edit it instead")
    config = initiative_configuration(wish)
    return config, plan_of(config)


def write_configuration(root: Path, config: Object) -> None:
    """Write the configuration, where there is none.

    Raises:
        Refused: there is one, or it cannot be written.
    """
    try:
        atomic.shared_folder(root)
        atomic.create(root / schema.MULTI_CONFIG, json_document(config))
    except FileExistsError:
        raise Refused(f"{root / schema.MULTI_CONFIG} already exists: edit it instead") from None
    except OSError as error:
        raise Refused(f"{error.filename or root}: {error.strerror or error}") from None


def _stream(given_text: str) -> Object:
    named = _NAMED.match(given_text)
    name, repo = (named[1], named[2]) if named else ("", given_text)
    repo, _, branch = repo.partition("#")
    if not repo:
        raise Refused(f"{given_text!r}: a repository must be NAME=ADDRESS or NAME=ADDRESS#BRANCH")
    last = re.split(r"[/:]", repo.rstrip("/"))[-1]
    return {
        "name": name or last.removesuffix(".git"),
        "repo": repo,
        "branch": branch,
        "config_path": schema.CONFIG,
    }


def _barriers(given: Iterable[str]) -> Iterable[Object]:
    for given_text in given:
        name, sign, phase = (part.strip() for part in given_text.partition("="))
        if not sign or not name or not phase:
            raise Refused(f"{given_text!r}: a barrier must be NAME=PHASE")
        described = f"All workstreams must complete {phase} before any continues"
        yield {"name": name, "phase": phase, "description": described}


CLONING_PATIENCE = 900.0  # seconds that cloning may take

_QUICK = 20.0

_URL = re.compile(r"(?:https?|ssh|git|file)://[^\s]+")

_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^\s:][^\s]*")

_SAFE = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "protocol.ext.allow=never",
)  # fmt: skip

_PASSED_ON = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")


def repository_address(root: Path, repo: str) -> str:
    """What to clone from: an address, or a folder given absolutely or from the initiative.

    Raises:
        Refused: it is none that git may be given.
    """
    name = clean_line(repo, 200)
    if not repo:
        raise Refused("names no repository")
    if repo.startswith("-") or "::" in repo or "\n" in repo:
        raise Refused(f"the address {name} is not one that acp passes to git")
    if _URL.fullmatch(repo) or _SCP.fullmatch(repo):
        return repo
    if "://" in repo:
        raise Refused(
            f"the address {name} is not one that acp passes to git (https, ssh, git, file)"
        )
    folder = os.path.abspath(os.path.join(root, os.path.expanduser(repo)))
    if not os.path.isdir(folder):
        raise Refused(f"no folder {name}")
    return folder


def repository_within(root: Path, repo: str) -> str:
    """The folder of the initiative that ``repo`` names, relative to it; "" where it names none."""
    if not repo or "://" in repo or _SCP.fullmatch(repo) or os.path.isabs(repo):
        return ""
    inside = schema.inside(root, repo)
    if inside is None or inside == root or not inside.is_dir():
        return ""
    return os.path.relpath(inside, root)


def branch_of(folder: Path) -> str:
    """The branch that is checked out; "" where none is, or git cannot tell."""
    done = _git(["-C", str(folder), "symbolic-ref", "--short", "-q", "HEAD"], _QUICK)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def head_of(folder: Path) -> str:
    """The commit that is checked out; "" where there is none yet."""
    done = _git(["-C", str(folder), "rev-parse", "--verify", "-q", "HEAD"], _QUICK)
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def clone(source: str, branch: str, target: Path) -> None:
    """Clone ``branch`` (or the one that the repository names) into ``target``, whole or not at all.

    Raises:
        Refused: git says no; its last line says why.
    """
    unfinished = target.parent / f".{target.name}.{secrets.token_hex(4)}.acp-clone"
    chosen = ["--branch", branch] if branch else []
    words = ["clone", "--quiet", "--no-recurse-submodules", "--template=", *chosen]
    try:
        done = _git([*words, "--", source, str(unfinished)], CLONING_PATIENCE)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = clean_line(said[-1], 300) if said else f"exit code {done.returncode}"
            raise Refused(f"{target.name} cannot be cloned: {reason}")
        os.rename(unfinished, target)
    except OSError as error:
        raise Refused(f"{target}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def sweep_clones(root: Path, name: str) -> None:
    """Remove what a killed clone of ``name`` left."""
    for left in root.glob(f".{name}.*.acp-clone"):
        if not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def _git(words: Sequence[str], patience: float) -> subprocess.CompletedProcess[bytes]:
    env = {
        name: v
        for name, v in os.environ.items()
        if name in _PASSED_ON or not name.startswith("GIT_")
    }
    env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "LC_ALL": "C"}
    env["GIT_ALLOW_PROTOCOL"] = "file:git:http:https:ssh"
    try:
        process = subprocess.Popen(
            ["git", *_SAFE, *words],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Refused(f"git cannot be run: {error.strerror or error}") from None
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        raise Refused(f"git took longer than {patience:.0f} s") from None
    finally:
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
