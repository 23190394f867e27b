"""Hooks that may stop an act: they are asked before it, with the existing program's contract.

A hook gets its payload as JSON on the standard input (or by POST) and answers with one JSON object,
``{"verdict": "allow" | "warn" | "block", "message": ...}``. One that fails, that takes too long or
that answers with anything else stops the act, too: nothing is done past it. How each ended stands
in `hooks.AUDIT`. Source: the existing program's hooks; governed protocol specification, "Coordinator
hooks" (exit code 0, ended at a timeout).
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from acp_core.agents import spawn
from acp_core.agents.spawn import SpawnError
from acp_core.files.reading import stamp
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import trust
from acp_core.protocols.governed.schema import Hook, Object, text
from acp_core.protocols.governed.state import OPERATION_MARK
from acp_core.protocols.governed.write import hook_programs, hooks
from acp_core.protocols.governed.write.hooks import Ended

VERDICTS = ("allow", "warn", "block")

_LONGEST = 500  # characters of a message that are kept

_OWN = (schema.STATE, schema.HISTORY, schema.LEDGER)


def ask(root: str | Path, act: str, details: Object) -> list[str]:
    """Ask the hooks that may stop an act; returns what those say that do not.

    Args:
        root: the repository; its lock must not be held, a hook may use acp itself.
        act: the name of the act.
        details: the payload: ``turn_id`` and ``role`` where a turn is concerned, and more.

    Raises:
        Refused: one of them stops it, or may not be run.
    """
    place = Path(os.path.abspath(root))
    config = schema.read_object(place / schema.CONFIG).value
    messages: list[str] = []
    for phase, hook in schema.asked_before(config, act):
        messages += _one(place, phase, hook, hooks.payload_of(place, phase, details))
    return messages


def _one(place: Path, phase: str, hook: Hook, payload: Object) -> list[str]:
    name = hook.name or "hook"
    if os.environ.get(OPERATION_MARK):
        raise Refused(f"the hook {name} must run first ({phase}), but not within a turn")
    if not trust.is_trusted(place):
        raise Refused(
            f"the hook {name} must run first ({phase}); allow it: acp governed trust {place}"
        )
    before, began = _own(place), time.monotonic()
    ended = _answered(place, hook, phase, payload)
    if _own(place) != before:
        ended = Ended(
            "aborted_tamper", ended.exit_code, message="the hook changed the run's own files"
        )
    line = hooks.audit(hook, phase, payload, ended, time.monotonic() - began)
    hooks.note(place, phase, [line])
    message = clean_line(f"hook {phase}, {name}: {ended.message or ended.action}", 400)
    if ended.action not in ("continued", "warned"):
        raise Refused(f"stopped by the {message}")
    return [message] if ended.action == "warned" else []


def _own(place: Path) -> list[object]:
    return [stamp(place / name) for name in _OWN]


def _answered(place: Path, hook: Hook, phase: str, payload: Object) -> Ended:
    """Run one hook, and read its answer."""
    seconds = hook.seconds
    if hook.type == "http":
        return _posted(hook, payload)
    if not hook.command:
        return Ended("blocked_failure", message="the hook names no command")
    try:
        program = spawn.resolve(hook.command[0], str(place))
        with hook_programs.payload_file(payload) as path:
            env = spawn.environment() | hooks.variables(hook, phase, payload, path)
            ran = hook_programs.run(
                [program, *hook.command[1:]], place, env, seconds, _LONGEST, path
            )
    except (SpawnError, OSError) as error:
        return Ended("blocked_failure", message=clean_line(str(error), _LONGEST))
    if ran.code is None:
        return Ended(
            "blocked_timeout", None, True, f"ended after {seconds:g} seconds. {ran.output}"
        )
    if ran.code != 0:
        return Ended(
            "blocked_failure",
            ran.code,
            message=f"the hook ended with code {ran.code}. {ran.output}",
        )
    return _judged(ran.out, ran.code)


def _posted(hook: Hook, payload: Object) -> Ended:
    try:
        status, body = hooks.post(hook.url, payload, hook.seconds)
    except Exception as error:  # whatever a network answers with: nothing is done past it
        return Ended(
            "blocked_failure", message=clean_line(f"{type(error).__name__}: {error}", _LONGEST)
        )
    return _judged(body, status)


def _judged(answer: bytes, code: int) -> Ended:
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        value = None
    verdict = value.get("verdict") if isinstance(value, dict) else None
    if not isinstance(value, dict) or verdict not in VERDICTS:
        return Ended(
            "blocked_invalid_output", code, message="the hook gave no verdict (allow, warn, block)"
        )
    action = {"allow": "continued", "warn": "warned", "block": "blocked"}[verdict]
    return Ended(action, code, message=text(value, "message", _LONGEST), verdict=verdict)
