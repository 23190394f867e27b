"""``agentxchain-multi.json`` as something to act on: checked, with every path kept inside.

Source: governed protocol specification, "Coordinator config". Standard library only.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, obj

HOOKS = (
    "on_barrier_reached",
    "on_barrier_approved",
    "on_super_run_completed",
    "on_workstream_failed",
)

TIMEOUT_MS = 30_000  # of a hook, where the configuration names none

CONTEXT = ".coordinator/context/"

MOST = 100  # workstreams, and barriers

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[A-Za-z0-9._/@+#-]{1,200}")

_RESERVED = ("coordinator-hooks", "agentxchain-multi.json")


class Stream(NamedTuple):
    """A workstream: ``config_path`` is relative to its repository."""

    name: str
    repo: str
    branch: str
    config_path: str

    @property
    def run(self) -> str:
        """The folder of its run, relative to its repository ("." where it is the same)."""
        return str(PurePosixPath(self.config_path).parent)


class Barrier(NamedTuple):
    """A synchronisation point: every workstream stops where it asks to leave ``phase``."""

    name: str
    phase: str
    description: str


class Hook(NamedTuple):
    """A script to run: ``path`` is relative to the initiative."""

    name: str
    path: str
    timeout_ms: int


class ContextRules(NamedTuple):
    """Whether and what is told across the workstreams (``context_generation``)."""

    enabled: bool
    folder: str
    decisions: bool
    objections: bool
    files: bool


class Plan(NamedTuple):
    """The whole configuration."""

    super_run_id: str
    description: str
    streams: tuple[Stream, ...]
    barriers: tuple[Barrier, ...]
    hooks: tuple[Hook, ...]
    context: ContextRules

    def barrier(self, name: str) -> Barrier | None:
        """The barrier of this name."""
        return next((each for each in self.barriers if each.name == name), None)

    def by_phase(self) -> dict[str, str]:
        """Phase -> the barrier that ends it."""
        return {each.phase: each.name for each in self.barriers}


def read_plan(root: Path) -> Plan:
    """The configuration of the initiative in ``root``.

    Raises:
        Refused: it cannot be read, or something in it must not be acted on: what, and where.
    """
    loaded = schema.read_object(root / schema.MULTI_CONFIG)
    if loaded.missing:
        raise Refused(f"{root} has no {schema.MULTI_CONFIG}: write the initiative's configuration")
    if loaded.reason:
        raise _wrong(loaded.reason)
    return plan_of(loaded.value)


def plan_of(config: Object) -> Plan:
    """The plan in a configuration. Raises as `read_plan`."""
    if not isinstance(config.get("workstreams"), list):
        raise _wrong(
            "“workstreams” must be a list; acp only reads the layout of the agentxchain program"
        )
    streams = tuple(_stream(raw, place) for place, raw in enumerate(config["workstreams"], 1))
    if not 0 < len(streams) <= MOST:
        raise _wrong(f"an initiative needs 1 to {MOST} workstreams")
    raw_barriers = config.get("barriers", [])
    if not isinstance(raw_barriers, list) or len(raw_barriers) > MOST:
        raise _wrong(f"“barriers” must be a list of at most {MOST}")
    barriers = tuple(_barrier(raw, place) for place, raw in enumerate(raw_barriers, 1))
    _once("workstream", [each.name.casefold() for each in streams])
    _once("barrier", [each.name for each in barriers])
    _once("barrier of phase", [each.phase for each in barriers])
    run_id = config.get("super_run_id", "")
    if not isinstance(run_id, str) or (run_id and not _NAME.fullmatch(run_id)):
        raise _wrong("“super_run_id” must be letters, digits, dots, dashes and underscores")
    description = config.get("description", "")
    return Plan(
        run_id,
        description if isinstance(description, str) else "",
        streams,
        barriers,
        tuple(_hooks(config)),
        _context(obj(config, "context_generation")),
    )


def _wrong(what: str) -> Refused:
    return Refused(f"{schema.MULTI_CONFIG}: {clean_line(what, 400)}")


def _once(what: str, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise _wrong(f"{what} {', '.join(twice)} is named twice")


def _stream(raw: object, place: int) -> Stream:
    if not isinstance(raw, dict):
        raise _wrong(f"workstream {place} is not an object")
    name, repo = raw.get("name"), raw.get("repo", "")
    branch, config = raw.get("branch", ""), raw.get("config_path", schema.CONFIG)
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.casefold() in _RESERVED:
        raise _wrong(f"workstream {place} needs a name of letters, digits, dots and dashes")
    if not isinstance(repo, str) or "\0" in repo or "\n" in repo or len(repo) > 1000:
        raise _wrong(f"workstream {name}: “repo” must be an address or a folder")
    if not isinstance(branch, str) or (branch and not _BRANCH.fullmatch(branch)):
        raise _wrong(f"workstream {name}: “branch” is not a valid branch name")
    if not isinstance(config, str) or not _is_inside(config):
        raise _wrong(f"workstream {name}: “config_path” must stay inside the repository")
    return Stream(name, repo, branch, config)


def _barrier(raw: object, place: int) -> Barrier:
    if not isinstance(raw, dict):
        raise _wrong(f"barrier {place} is not an object")
    name, phase, description = raw.get("name"), raw.get("phase"), raw.get("description", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong(f"barrier {place} needs a name of letters, digits, dots and dashes")
    if not isinstance(phase, str) or not phase:
        raise _wrong(f"barrier {name} names no phase")
    return Barrier(name, phase, description if isinstance(description, str) else "")


def _hooks(config: Object) -> list[Hook]:
    found = []
    for name, raw in obj(config, "hooks").items():
        if name not in HOOKS:
            raise _wrong(f"unknown hook {name} (hooks: {', '.join(HOOKS)})")
        path, timeout = raw, TIMEOUT_MS
        if isinstance(raw, dict):
            path, timeout = raw.get("path"), raw.get("timeout_ms", TIMEOUT_MS)
        if not isinstance(path, str) or not _is_inside(path):
            raise _wrong(f"hook {name} must name a script inside the initiative")
        whole = isinstance(timeout, int) and not isinstance(timeout, bool)
        if not whole or not 100 <= timeout <= 600_000:
            raise _wrong(f"hook {name}: “timeout_ms” must be from 100 to 600000")
        found.append(Hook(name, path, timeout))
    return found


def _context(raw: Object) -> ContextRules:
    def on(key: str) -> bool:
        return raw.get(key, True) is True

    folder = raw.get("output_dir", CONTEXT)
    if not isinstance(folder, str) or not _is_inside(folder):
        raise _wrong("“context_generation.output_dir” must stay inside the initiative")
    return ContextRules(
        on("enabled"),
        folder,
        on("include_decisions"),
        on("include_objections"),
        on("include_file_summaries"),
    )


def _is_inside(path: str) -> bool:
    """Whether a relative path stays where it is; links are looked at when it is used."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path
