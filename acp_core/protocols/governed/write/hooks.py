"""A run's hooks: programs and addresses that are told what has happened in it.

A program gets a payload file and environment variables, must end with code 0, and is ended at its
timeout; an address gets the payload by POST. How each ended stands in `AUDIT`; the run goes on
either way. Hooks run after what they are told of was written, once; a command that is killed in
between runs none. Source: governed protocol specification, "Coordinator hooks" (the contract of
plugin hooks). None runs before a human has allowed it (see `trusting`).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from acp_core.agents import spawn
from acp_core.agents.spawn import SpawnError
from acp_core.files.transaction import APPEND, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import trust
from acp_core.protocols.governed.schema import (
    HOOK_AUDIT,
    MOST_HOOKS,
    Hook,
    Object,
    Programs,
    decode,
    is_asked,
)
from acp_core.protocols.governed.state import OPERATION_MARK, format_time
from acp_core.protocols.governed.write import hook_programs
from acp_core.protocols.governed.write.journal import held, line

_LONGEST = 500  # characters of a hook's message

"""The phases in which a blocking hook is asked before an act, and that act."""


class Ended(NamedTuple):
    """How a hook ended."""

    action: str  # continued, warned_failure, warned_timeout, skipped, blocked, ...
    exit_code: int | None = None
    timed_out: bool = False
    message: str = ""
    verdict: str = ""


def fire(root: str | Path, phase: str, details: Object) -> list[str]:
    """Run the hooks of a phase, one after the other; returns what is worth saying.

    Args:
        root: the repository; its lock must not be held, a hook may use acp itself.
        phase: one of `PHASES`.
        details: the payload: ``turn_id`` and ``role`` where a turn is concerned, and more.
    """
    place = Path(os.path.abspath(root))
    config = schema.read_object(place / schema.CONFIG).value
    hooks = decode(Programs, config).hooks.get(phase, ())
    wanted = [each for each in hooks[:MOST_HOOKS] if not is_asked(phase, each)]
    if not wanted or os.environ.get(OPERATION_MARK):
        return []
    allowed = trust.is_trusted(place)
    payload = payload_of(place, phase, details)
    messages, lines = [], []
    for hook in wanted:
        began = time.monotonic()
        if allowed:
            ended = _run(place, hook, phase, payload)
        else:
            ended = Ended("skipped", message="not allowed yet: acp governed trust")
        name = hook.name or "hook"
        lines.append(audit(hook, phase, payload, ended, time.monotonic() - began))
        if ended.action != "continued":
            messages.append(
                clean_line(f"hook {phase}, {name}: {ended.action}: {ended.message}", 400)
            )
    return [*messages, *note(place, phase, lines)]


def payload_of(place: Path, phase: str, details: Object) -> Object:
    """What a hook is told: the run, the phase of the hook, and ``details``."""
    state = schema.read_object(place / schema.STATE).value
    return {"hook_phase": phase, "run_id": state.get("run_id"), "phase": state.get("phase"),
            "status": state.get("status"), "project_root": str(place), **details}  # fmt: skip


def note(place: Path, phase: str, lines: Sequence[Object]) -> list[str]:
    """Note how hooks ended in `AUDIT`; returns what is to be said where that fails."""
    with contextlib.suppress(Refused):  # what the hooks are about is done
        with held(place) as holder:
            data = b"".join(line(each) for each in lines)
            holder.commit(f"record the hooks of {phase}", [Write(place / HOOK_AUDIT, APPEND, data)])
        return []
    return ["the results of the hooks could not be recorded"]


def audit(hook: Hook, phase: str, payload: Object, ended: Ended, seconds: float) -> Object:
    """The line of `AUDIT` for a hook that has ended."""
    return {
        "timestamp": format_time(datetime.now(UTC)),
        "hook_phase": phase,
        "hook_name": hook.name,
        "transport": hook.type or "process",
        "run_id": payload.get("run_id"),
        "turn_id": payload.get("turn_id"),
        "duration_ms": int(seconds * 1000),
        "verdict": ended.verdict or None,
        "message": ended.message or None,
        "annotations": [],
        "exit_code": ended.exit_code,
        "timed_out": ended.timed_out,
        "stderr_excerpt": ended.message or None,
        "orchestrator_action": ended.action,
    }


def _run(root: Path, hook: Hook, phase: str, payload: Object) -> Ended:
    if hook.type == "http":
        return _post(hook, payload)
    if not hook.command:
        return Ended("skipped", message="the hook names no command")
    try:
        program = spawn.resolve(hook.command[0], str(root))
        with hook_programs.payload_file(payload) as path:
            env = spawn.environment() | variables(hook, phase, payload, path)
            return _wait([program, *hook.command[1:]], root, env, hook.seconds)
    except SpawnError as error:
        return Ended("warned_failure", message=clean_line(str(error), _LONGEST))
    except OSError as error:
        return Ended("warned_failure", message=clean_line(error.strerror or str(error), _LONGEST))


def variables(hook: Hook, phase: str, payload: Object, path: str) -> dict[str, str]:
    """What the hook is told by its environment."""
    own = {name: value for name, value in hook.env.items() if "\0" not in value}
    return own | {
        "AGENTXCHAIN_EVENT": phase,
        "AGENTXCHAIN_HOOK_PHASE": phase,
        "AGENTXCHAIN_HOOK_NAME": hook.name,
        "AGENTXCHAIN_PAYLOAD_FILE": path,
        "AGENTXCHAIN_PLUGIN_CONFIG": json.dumps(hook.config),
        "AGENTXCHAIN_PROJECT_ROOT": str(payload["project_root"]),
        "AGENTXCHAIN_RUN_ID": str(payload.get("run_id") or ""),
        "AGENTXCHAIN_TURN_ID": str(payload.get("turn_id") or ""),
        "AGENTXCHAIN_ROLE": str(payload.get("role") or ""),
        "AGENTXCHAIN_PHASE": str(payload.get("phase") or ""),
    }


def _wait(words: list[str], root: Path, env: dict[str, str], timeout: float) -> Ended:
    ran = hook_programs.run(words, root, env, timeout, _LONGEST)
    if ran.code is None:
        return Ended("warned_timeout", None, True, f"ended after {timeout:g} seconds. {ran.output}")
    return Ended("continued" if ran.code == 0 else "warned_failure", ran.code, False, ran.output)


def _post(hook: Hook, payload: Object) -> Ended:
    timeout = hook.seconds
    if urlsplit(hook.url).scheme not in ("http", "https"):
        return Ended("skipped", message="the hook names no http or https address")
    try:
        status, _ = post(hook.url, payload, timeout)
        return Ended("continued", status)
    except urllib.error.HTTPError as error:
        with error:
            return Ended("warned_failure", error.code, False, f"HTTP {error.code}")
    except TimeoutError:
        return Ended("warned_timeout", None, True, f"no answer within {timeout:g} seconds")
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        if isinstance(getattr(error, "reason", None), TimeoutError):
            return Ended("warned_timeout", None, True, f"no answer within {timeout:g} seconds")
        return Ended("warned_failure", message=clean_line(str(error), _LONGEST))


def post(url: str, payload: Object, timeout: float) -> tuple[int, bytes]:
    """What an address answers to a payload: the status and the body.

    Raises:
        OSError, HTTPException, ValueError: nothing, or an error; or it is no http or https address.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("the hook names no http or https address")
    data = json.dumps(payload).encode()
    headers = {"content-type": "application/json", "user-agent": "acp"}
    asked = urllib.request.Request(url, data=data, headers=headers, method="POST")
    with urllib.request.build_opener(_NoRedirect).open(asked, timeout=timeout) as response:
        return response.status, response.read(1 << 16)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What happened in a run is told to the address that was allowed, and to no other."""

    def redirect_request(self, *_: object) -> None:
        return None
