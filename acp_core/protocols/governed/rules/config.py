"""The rules for ``agentxchain.json``: what it must name, and what must not lead anywhere.

Source: governed protocol specification, "Files" (project configuration) and "Phase model"; the
messages are the existing program's where it has any.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import Object, obj, objects, strings, text
from acp_core.protocols.governed.schema.config import Config
from acp_core.protocols.governed.schema.hook_phases import (
    ASKED_BEFORE,
    BLOCKING,
    HOOK_PHASES,
    is_asked,
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
