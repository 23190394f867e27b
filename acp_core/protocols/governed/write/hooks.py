"""A run's hooks: programs and addresses that are told what has happened in it, or asked before an act.

A program gets a payload file and environment variables, must end with code 0, and is ended at its
timeout; an address gets the payload by POST. How each ended stands in `HOOK_AUDIT`; the run goes on
either way. Hooks run after what they are told of was written, once; a command that is killed in
between runs none. None runs before a human has seen and allowed it; what was seen is remembered by
its content in acp's own folder, and a script of an initiative that changed since is not run.

A hook that may stop an act gets its payload as JSON on the standard input (or by POST) and answers
with one JSON object, ``{"verdict": "allow" | "warn" | "block", "message": ...}``. One that fails,
that takes too long or that answers with anything else stops the act, too: nothing is done past it.
Source: governed protocol specification, "Coordinator hooks" (the contract of plugin hooks), and the
existing program's hooks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import urlsplit

from acp_core.agents.program import SpawnError, environment, resolve
from acp_core.files import atomic
from acp_core.files.locked import locked_folder
from acp_core.files.reading import Unreadable, read_bounded, stamp
from acp_core.files.secrets import mask
from acp_core.files.transaction import APPEND, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import paths as places
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import run
from acp_core.protocols.governed.read.run import (
    asked_permissions,
    permissions_fingerprint,
    trusted_file,
)
from acp_core.protocols.governed.schema import (
    HOOK_AUDIT,
    MOST_HOOKS,
    Hook,
    Object,
    Programs,
    decode,
    is_asked,
    text,
)
from acp_core.protocols.governed.state import OPERATION_MARK, format_time
from acp_core.protocols.governed.write.opened import (
    Opened,
    RunPlan,
    commit,
    hold_files,
    locked,
    log_line,
    permitted,
    read_unlocked,
    refuse_agents,
    take_as_they_are,
    write,
)

_LONGEST = 500  # characters of a hook's message


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
    allowed = run.is_trusted(place)
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
        with hold_files(place) as holder:
            data = b"".join(log_line(each) for each in lines)
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
    """Run a hook that is told of something."""
    if hook.type == "http":
        return _post(hook, payload)
    if not hook.command:
        return Ended("skipped", message="the hook names no command")
    try:
        ran = _ran(root, hook, phase, payload)
    except OSError as error:
        return Ended("warned_failure", message=clean_line(error.strerror or str(error), _LONGEST))
    except SpawnError as error:
        return Ended("warned_failure", message=clean_line(str(error), _LONGEST))
    if ran.code is None:
        return _timed_out("warned_timeout", hook, ran)
    return Ended("continued" if ran.code == 0 else "warned_failure", ran.code, False, ran.output)


def _ran(root: Path, hook: Hook, phase: str, payload: Object, *, asked: bool = False) -> ProgramRan:
    """Run the program of a hook; one that is asked gets its payload on the standard input, too."""
    program = resolve(hook.command[0], str(root))
    with payload_file(payload) as path:
        env = environment() | variables(hook, phase, payload, path)
        words = [program, *hook.command[1:]]
        given = path if asked else os.devnull
        return run_program(words, root, env, hook.seconds, _LONGEST, given)


def _timed_out(action: str, hook: Hook, ran: ProgramRan) -> Ended:
    return Ended(action, None, True, f"ended after {hook.seconds:g} seconds. {ran.output}")


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


# --- running the program of a hook: its payload, its timeout, and nothing left behind

_GRACE = 2.0  # seconds between SIGTERM and SIGKILL

_TAIL = 4_000  # bytes of what it printed that are looked at

_MOST = 1 << 20  # bytes of its standard output that are kept


class ProgramRan(NamedTuple):
    """How it ended: ``code`` is None where it was ended at its timeout.

    ``output`` is the end of what it printed, safe to show; ``out`` its standard output as it is.
    """

    code: int | None
    output: str
    out: bytes = b""


@contextlib.contextmanager
def payload_file(payload: Object) -> Iterator[str]:
    """A file with the payload, which only the user may read; it is removed afterwards.

    Raises:
        OSError: it cannot be written.
    """
    descriptor, path = tempfile.mkstemp(prefix="acp-hook-", suffix=".json")
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(payload, file, ensure_ascii=False, indent=1)
            file.write("\n")
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def run_program(
    words: Sequence[str],
    root: Path,
    env: Mapping[str, str],
    seconds: float,
    most: int,
    given: str = os.devnull,
) -> ProgramRan:
    """Run a program and wait for it; with it ends whatever it started.

    Args:
        words: the program and its arguments; no shell takes part.
        root: where it runs.
        env: all of its environment.
        seconds: after which it is ended.
        most: characters of what it printed that are kept.
        given: the file that is its standard input.

    Raises:
        OSError: it cannot be started.
    """
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(given, "rb") as read,
    ):
        process = subprocess.Popen(
            list(words),
            cwd=root,
            env=dict(env),
            stdin=read,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
            _signal(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        finally:
            _signal(process, signal.SIGKILL)
            process.wait()
        output = "\n".join(filter(None, (_tail(out), _tail(err))))
        out.seek(0)
        printed = out.read(_MOST)
    code = None if late else process.returncode
    return ProgramRan(code, clean_line(mask(output)[-most:], most), printed)


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
    return file.read().decode("utf-8", "replace").strip()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the whole group: also to what the program started and left behind."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, number)


# --- hooks that are asked before an act, and may stop it

VERDICTS = ("allow", "warn", "block")

_OWN = (schema.STATE, schema.HISTORY, schema.LEDGER)


def ask_hooks(root: str | Path, act: str, details: Object) -> list[str]:
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
        messages += _one(place, phase, hook, payload_of(place, phase, details))
    return messages


def _one(place: Path, phase: str, hook: Hook, payload: Object) -> list[str]:
    name = hook.name or "hook"
    if os.environ.get(OPERATION_MARK):
        raise Refused(f"the hook {name} must run first ({phase}), but not within a turn")
    if not run.is_trusted(place):
        raise Refused(
            f"the hook {name} must run first ({phase}); allow it: acp governed trust {place}"
        )
    before, began = _own(place), time.monotonic()
    ended = _answered(place, hook, phase, payload)
    if _own(place) != before:
        ended = Ended(
            "aborted_tamper", ended.exit_code, message="the hook changed the run's own files"
        )
    line = audit(hook, phase, payload, ended, time.monotonic() - began)
    note(place, phase, [line])
    message = clean_line(f"hook {phase}, {name}: {ended.message or ended.action}", 400)
    if ended.action not in ("continued", "warned"):
        raise Refused(f"stopped by the {message}")
    return [message] if ended.action == "warned" else []


def _own(place: Path) -> list[object]:
    return [stamp(place / name) for name in _OWN]


def _answered(place: Path, hook: Hook, phase: str, payload: Object) -> Ended:
    """Run a hook that is asked, and read its answer."""
    if hook.type == "http":
        return _posted(hook, payload)
    if not hook.command:
        return Ended("blocked_failure", message="the hook names no command")
    try:
        ran = _ran(place, hook, phase, payload, asked=True)
    except (SpawnError, OSError) as error:
        return Ended("blocked_failure", message=clean_line(str(error), _LONGEST))
    if ran.code is None:
        return _timed_out("blocked_timeout", hook, ran)
    if ran.code != 0:
        message = f"the hook ended with code {ran.code}. {ran.output}"
        return Ended("blocked_failure", ran.code, message=message)
    return _judged(ran.out, ran.code)


def _posted(hook: Hook, payload: Object) -> Ended:
    try:
        status, body = post(hook.url, payload, hook.seconds)
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


def trust_run(root: Path) -> list[str]:
    """Allow what the configuration asks for, as it stands; returns what that is.

    Raises:
        OSError: it cannot be remembered.
    """
    config = schema.read_object(root / schema.CONFIG).value
    place = trusted_file()
    atomic.private_folder(place.parent)
    with locked_folder(str(place.parent)):
        known = schema.read_object(place).value
        known[os.path.realpath(root)] = permissions_fingerprint(root, config)
        atomic.replace(place, (json.dumps(known, indent=1) + "\n").encode())
    return asked_permissions(config)


_LARGEST = 4 << 20  # bytes of a script


def is_script_trusted(root: Path, path: str) -> bool:
    """Whether a script of the initiative is, as it stands, what a human let run."""
    seen = script_digest(root, path)
    return bool(seen) and _known(root).get(path) == seen


def trust_scripts(root: Path, paths: Iterator[str] | tuple[str, ...]) -> list[str]:
    """Let these scripts run, as they stand; returns those that are there.

    Raises:
        OSError: it cannot be remembered.
    """
    place = _place()
    atomic.private_folder(place.parent)
    found = {path: seen for path in paths if (seen := script_digest(root, path))}
    with locked_folder(str(place.parent)):
        known = schema.read_object(place).value
        known[_key(root)] = {**schema.obj(known, _key(root)), **found}
        atomic.replace(place, json.dumps(known, indent=1).encode())
    return list(found)


def script_digest(root: Path, path: str) -> str:
    """The SHA-256 of a script inside of the initiative, "" where there is none."""
    inside = schema.inside(root, path)
    if inside is None:
        return ""
    with contextlib.suppress(Unreadable):
        return hashlib.sha256(read_bounded(inside, _LARGEST)).hexdigest()
    return ""


def _known(root: Path) -> schema.Object:
    return schema.obj(schema.read_object(_place()).value, _key(root))


def _key(root: Path) -> str:
    return os.path.realpath(root)


def _place() -> Path:
    return places.state_folder() / "governed" / "trusted.json"


# --- an act of a run, with the hooks that are asked before it and told after it


def carry_out(
    root: str | Path,
    act: str,
    plan: Callable[[Opened], RunPlan],
    *,
    human: bool = True,
    role: str = "",
    excluded: Iterable[str] = (),
) -> RunPlan:
    """Ask the hooks that may stop an act; plan and write it under the run's lock; tell hooks of it.

    Hooks run once each, and not under the lock: they may use acp themselves.

    Args:
        root: the repository.
        act: the name of the act.
        plan: what it does, of the run as it is then.
        human: whether an agent at work is refused it.
        role, excluded: as those of `locked`.

    Returns:
        What was done, and what hooks said of it.

    Raises:
        Refused: it is not done. Nothing was written, but for why a result does not pass.
    """
    if human:
        refuse_agents()
    said: list[str] = []
    if schema.asked_before(schema.read_object(Path(root) / schema.CONFIG).value, act):
        opened = permitted(read_unlocked(root, act), act, role=role, excluded=excluded)
        asked = plan(opened)
        said += [] if asked.refusal else ask_hooks(root, act, dict(asked.asked))
    with locked(root, act, role=role, excluded=excluded) as opened:
        made = plan(opened)
        if made.taken:
            take_as_they_are(opened, made.taken)
        if made.first:
            made.first()
        if made.move is None:
            write(opened, made.what, made.writes)
        else:
            commit(opened, made.what, made.move, made.writes)
    if made.refusal:
        raise made.refusal
    said += made.said
    for phase, details in made.told:
        said += fire(root, phase, details)
    return made._replace(said=tuple(said))
