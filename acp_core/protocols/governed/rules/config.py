"""The rules for the configurations: ``agentxchain.json``, and ``agentxchain-multi.json`` in both layouts.

Source: governed protocol specification, "Files" (project configuration), "Phase model" and
"Coordinator config"; the messages, and what the other layout may combine, are the existing program's.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import OWN, Initiative, existing_streams, plan_of
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules.findings import Trouble
from acp_core.protocols.governed.schema import (
    ASKED_BEFORE,
    BLOCKING,
    HOOK_PHASES,
    Config,
    Object,
    StreamConfig,
    is_asked,
    obj,
    objects,
    strings,
    text,
)

AUTHORITIES = (schema.AUTHORITATIVE, schema.PROPOSED, schema.REVIEW_ONLY)
RUNTIMES = ("manual", "local_cli", "api_proxy", "mcp", "remote_agent")
MIGRATE = "`acp governed migrate`"
_MOST = 100  # entries of one kind that are looked at


def check_config(run: Run) -> list[Trouble]:
    """Everything that is wrong with a run's configuration."""
    config = run.config.value
    messages = [*_named(config), *_roles(config), *_routing(config), *_gates(run)]
    if run.by_acp and _opens_gates(run.settings):
        messages.append(
            "The approval_policy would open gates automatically; acp lets only a human open them."
        )
    found = [
        Trouble(
            "CONFIG", model.Severity.ERROR, message, "Correct the configuration.", schema.CONFIG
        )
        for message in messages
    ]
    found += [
        Trouble("CONFIG", model.Severity.ERROR, message, remedy, schema.CONFIG)
        for message, remedy in (*_goal(config), *_bindings(config))
    ]
    return found + _hooks(run)


def _named(config: Object) -> Iterator[str]:
    for key in ("schema_version", "project", "roles", "runtimes"):
        if key not in config:
            yield f"{schema.CONFIG} lacks “{key}”."


def _goal(config: Object) -> Iterator[tuple[str, str]]:
    """The goal as the existing program takes it, and how to mend it."""
    project = obj(config, "project")
    goal = project.get("goal")
    if "goal" in project and not (isinstance(goal, str) and goal.strip()):
        yield "project.goal must be a non-empty string.", f"Write a goal, or {MIGRATE} removes it."
    elif isinstance(goal, str) and len(goal) > schema.LONGEST_GOAL:
        yield f"project.goal must be at most {schema.LONGEST_GOAL} characters.", "Shorten the goal."


def _bindings(config: Object) -> Iterator[tuple[str, str]]:
    """Roles that the existing program does not open with their runtime, and how to mend them."""
    for name in unlawful_bindings(config)[:_MOST]:
        message = f'Role "{_safe(name)}": invalid review_only + local_cli binding.'
        remedy = (
            "acp cannot stop a local program from writing: let a human or a service play the role"
        )
        yield message, f"{remedy}, or {MIGRATE} makes it authoritative."


def unlawful_bindings(config: Object) -> list[str]:
    """The roles that may only review and yet are played by a local program."""
    runtimes = objects(config.get("runtimes"))
    return [
        name
        for name, role in objects(config.get("roles")).items()
        if role.get("write_authority") == schema.REVIEW_ONLY
        and runtimes.get(str(role.get("runtime")), {}).get("type") == schema.LOCAL_PROGRAM
    ]


def _roles(config: Object) -> Iterator[str]:
    runtimes = objects(config.get("runtimes"))
    for name, role in list(objects(config.get("roles")).items())[:_MOST]:
        runtime, authority = role.get("runtime"), role.get("write_authority")
        if "runtimes" in config and (not isinstance(runtime, str) or runtime not in runtimes):
            named = text(role, "runtime", 80)
            yield f'Role "{_safe(name)}" references unknown runtime "{named}".'
        if authority is not None and authority not in AUTHORITIES:
            yield f'Role "{_safe(name)}": write_authority must be one of: {", ".join(AUTHORITIES)}.'
    for name, runtime in list(runtimes.items())[:_MOST]:
        kind = runtime.get("type")
        if kind is not None and kind not in RUNTIMES:
            yield f'Runtime "{_safe(name)}": type must be one of: {", ".join(RUNTIMES)}.'


def _routing(config: Object) -> Iterator[str]:
    roles, gates = objects(config.get("roles")), objects(config.get("gates"))
    for name, phase in list(objects(config.get("routing")).items())[:_MOST]:
        where = f'Routing "{_safe(name)}"'
        entry, most = phase.get("entry_role"), phase.get("max_concurrent_turns")
        if entry is not None and (not isinstance(entry, str) or entry not in roles):
            named = text(phase, "entry_role", 80)
            yield f'{where}: entry_role "{named}" is not a defined role.'
        for role in strings(phase, "allowed_next_roles")[:_MOST]:
            if role not in roles and role != "human":
                yield f'{where}: allowed_next_roles references unknown role "{_safe(role)}".'
        whole = isinstance(most, int) and not isinstance(most, bool)
        if most is not None and not (whole and 1 <= most <= 4):
            yield f"{where}: max_concurrent_turns must be an integer between 1 and 4."
        gate = phase.get("exit_gate")
        if isinstance(gate, str) and gate not in gates:
            yield f'Routing references unknown gate: "{_safe(gate)}".'


def _gates(run: Run) -> Iterator[str]:
    config = run.config.value
    for name, rule in list(objects(config.get("gates")).items())[:_MOST]:
        for path in strings(rule, "requires_files")[:_MOST]:
            if schema.inside(run.root, path) is None:
                yield f'Gate "{_safe(name)}": {_safe(path)} leads out of the repository.'
        if run.by_acp and rule.get("requires_human_approval") is not True:
            yield f'Gate "{_safe(name)}" must require human approval, as every gate does.'
    for role, prompt in list(obj(config, "prompts").items())[:_MOST]:
        if isinstance(prompt, str) and schema.inside(run.root, prompt) is None:
            yield f'The prompt of "{_safe(role)}", {_safe(prompt)}, leads out of the repository.'


def _opens_gates(config: Config) -> bool:
    """Whether the approval policy lets a gate open without a human."""
    moves, completion = config.phase_approval, config.completion_approval
    acts = (moves.default, completion.action, *(rule.action for rule in moves.rules))
    return "auto_approve" in acts


def _hooks(run: Run) -> list[Trouble]:
    """What of the configured hooks acp does not do, in a run that it carries itself."""
    hooks = obj(run.config.value, "hooks") if run.by_acp else {}
    found = []
    for phase in hooks:
        message = ""
        given = run.settings.hooks.get(phase, ())
        informed = [each for each in given if not is_asked(phase, each)]
        if phase not in HOOK_PHASES and (informed or phase not in ASKED_BEFORE):
            known = ", ".join(HOOK_PHASES)
            message = f"acp does not run hooks of “{_safe(phase)}”, only those of {known}."
        elif any(each.mode == BLOCKING for each in informed):
            message = f"A hook of {_safe(phase)} cannot block: acp runs it after the fact."
        if message:
            found.append(Trouble("HOOK", model.Severity.ADVICE, message, document=schema.CONFIG))
    return found


def _safe(name: str) -> str:
    return clean_line(name, 80)


COORDINATOR_KINDS = (
    "all_repos_accepted",
    "ordered_repo_sequence",
    "interface_alignment",
    "named_decisions",
    "shared_human_gate",
)


def check_coordinator_config(initiative: Initiative) -> list[Trouble]:
    """Everything that is wrong with the configuration."""
    if initiative.config.reason:
        return []
    if initiative.layout == OWN:
        try:
            plan_of(initiative.config.value)
        except Refused as error:
            return [_coordinator_trouble(str(error).removeprefix(f"{schema.MULTI_CONFIG}: "))]
        streams = {stream.name: stream for stream in initiative.settings.workstreams}
        return [_coordinator_trouble(problem) for problem in _circles(streams)]
    return [
        _coordinator_trouble(problem)
        for problem in (*_existing(initiative), *_alignment(initiative))
    ]


def _coordinator_trouble(problem: str) -> Trouble:
    message = f"{schema.MULTI_CONFIG}: {clean_line(problem, 400)}"
    return Trouble(
        "MULTI_CONFIG",
        model.Severity.ERROR,
        message,
        "Correct the configuration.",
        schema.MULTI_CONFIG,
    )


def _existing(initiative: Initiative) -> Iterator[str]:
    config = initiative.config.value
    repos, streams = initiative.settings.repos, existing_streams(config)
    phases = objects(config.get("routing"))
    for name, repo in list(repos.items())[:100]:
        if not repo.path:
            yield f"repository {name} names no path"
    for name, stream in list(streams.items())[:100]:
        if phases and stream.phase not in phases:
            yield f"workstream {name} is in the unknown phase {stream.phase}"
        for repo_name in stream.repos:
            if repo_name not in repos:
                yield f"workstream {name} names the unknown repository {repo_name}"
        entry = stream.entry_repo
        if entry and entry not in stream.repos:
            yield f"workstream {name} enters at {entry}, which is not one of its repositories"
        for other in stream.depends_on:
            if other not in streams:
                yield f"workstream {name} depends on the unknown workstream {other}"
        if stream.barrier and stream.barrier not in COORDINATOR_KINDS:
            yield f"workstream {name} ends at a barrier of the unknown kind {stream.barrier}"
    yield from _circles(streams)


def _circles(streams: dict[str, StreamConfig]) -> Iterator[str]:
    """Workstreams that can never begin, since each waits for itself through others."""
    for name in list(streams)[:100]:
        if name in _after(streams, name):
            yield f"workstream {name} depends on itself, through {_through(streams, name)}"


def _after(streams: dict[str, StreamConfig], name: str) -> set[str]:
    """The workstreams that must be done before this one, directly or through others."""
    found: set[str] = set()
    left = [*streams[name].depends_on]
    while left:
        other = left.pop()
        if other in streams and other not in found:
            found.add(other)
            left += streams[other].depends_on
    return found


def _through(streams: dict[str, StreamConfig], name: str) -> str:
    """The others of the circle in which a workstream depends on itself."""
    circle = [other for other in _after(streams, name) if name in _after(streams, other)]
    return ", ".join(sorted(set(circle) - {name})) or "no other repository"


def _alignment(initiative: Initiative) -> Iterator[str]:
    """Every repository has the coordinator's phases, in its order."""
    wanted = tuple(schema.obj(initiative.config.value, "routing"))
    for stream in initiative.workstreams:
        run = stream.run
        if not wanted or run is None or run.config.reason:
            continue
        problem = tuple(schema.obj(run.config.value, "routing"))
        if problem and problem != wanted:
            yield (
                f"repository {stream.name} has the phases {', '.join(problem)}, and not "
                f"{', '.join(wanted)}"
            )
