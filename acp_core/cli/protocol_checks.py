"""What ``acp doctor`` says of the protocols that other distributions bring.

One that was written for acp 0.1.0 or 0.2 may import modules that have moved, or override methods that are
called otherwise now. Each such thing is named, with what it is called now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points

from acp_core.cli.checks import Check, State
from acp_core.model.text import clean_line
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration

_GROUP = "Protocols"
_LONGEST = 300  # characters of what a stranger's fault says
_KIT = "acp_core.protocols.kit"
_REGISTRY = "acp_core.protocols.registry"
_DISCOVERY = "acp_core.protocols.discovery"
_CONTRACT = "acp_core.protocols.contract"
_PAST = "acp_core.model.past"

MOVED = {
    **{
        f"acp_core.{name}": f"acp_core.model.{name}"
        for name in (
            "action", "clock", "format", "light", "turn",
        )
    },
    **{f"acp_core.{name}": "acp_core.model.snapshot" for name in ("cause", "question")},
    **{f"acp_core.{name}": _PAST for name in ("derivation", "story")},
    **{f"acp_core.model.{name}": "acp_core.model.snapshot" for name in ("cause", "obstacle", "question")},
    **{f"acp_core.model.{name}": _PAST for name in ("derivation", "marks", "story", "tracked")},
    "acp_core.model.sentence": "acp_core.model.format",
    "acp_core.arguments": f"{_KIT}.parser",
    "acp_core.attention": "acp_core.person.attention",
    "acp_core.case": f"{_KIT}.diagnosis",
    "acp_core.collaboration": _CONTRACT,
    "acp_core.command_line": f"{_KIT}.command_line",
    "acp_core.findings": f"{_KIT}.findings",
    "acp_core.human_journal": "acp_core.person.journal",
    "acp_core.invalid": f"{_KIT}.schema",
    "acp_core.kept": _PAST,
    "acp_core.loading": f"{_KIT}.documents",
    "acp_core.locations": "acp_core.protocols.locations",
    "acp_core.loop_words": "acp_core.loops.wording",
    "acp_core.manual": f"{_KIT}.parser",
    "acp_core.notify": "acp_core.person.notices",
    "acp_core.overview": "acp_core.fleet.overview",
    "acp_core.places": "acp_core.person.paths",
    "acp_core.programs": "acp_core.agents",
    "acp_core.refused": "acp_core.model.errors",
    "acp_core.search": "acp_core.fleet.search",
    "acp_core.settings": "acp_core.person.settings",
    "acp_core.signs": "acp_core.cli.signs",
    **{
        f"acp_core.protocols.{name}": f"{_REGISTRY}.{name}"
        for name in ("Protocol", "Command", "NAMES", "ENTRY_POINTS", "load", "bundled", "installed")
    },
    **{
        f"{_CONTRACT}.{name}": f"{_DISCOVERY}.{name}"
        for name in ("IGNORED", "DEPTH", "FOLDERS", "Discovery", "Changes", "Explorer", "identify")
    },
    f"{_CONTRACT}.discover": f"{_DISCOVERY}.discover",
    f"{_CONTRACT}.Found": f"{_DISCOVERY}.DiscoveredCollaboration",
    f"{_KIT}.diagnosis.Case": f"{_KIT}.diagnosis.DiagnosisContext",
    f"{_KIT}.diagnosis.Stranger": f"{_KIT}.diagnosis.UnmanagedProcess",
    "acp_core.protocols.newest": _DISCOVERY,
    f"{_PAST}.Kept": f"{_PAST}.TrackedFile",
    f"{_PAST}.Told": f"{_PAST}.PastLog",
    **{
        f"{_KIT}.{was}": f"{_KIT}.{now}"
        for was, now in (
            ("confirmation", "parser"), ("described", "command"), ("manual", "parser"),
            ("offers", "mirroring"), ("options", "fast_args"), ("printing", "parser"), ("quick", "fast_args"),
            ("steady", "snapshots"), ("taking_part", "tools"), ("tool_names", "tools"),
            ("unseen_text", "findings"), ("validation", "schema"),
        )
    },
    **{
        f"acp_core.files.{was}": f"acp_core.files.{now}"
        for was, now in (
            ("kernel", "watch"), ("mirrored", "read_only"), ("mounts", "locked"), ("newer", "read_only"),
            ("owners", "claims"), ("owners.process", "claims.this_process"), ("poll", "watch"),
            ("run_folder", "claims"), ("writes", "transaction"),
        )
    },
    **{f"acp_core.person.notices.{name}": "acp_core.person.notices" for name in ("news", "sent", "ways")},
    "acp_core.person.pins": "acp_core.person.paths",
    **{
        f"acp_core.agents.{was}": f"acp_core.agents.{now}"
        for was, now in (
            ("attempt", "spawn"), ("caps", "budgets"), ("command_lines", "identity"), ("elsewhere", "session_lock"),
            ("error_lines", "failures"), ("folder_trust", "program"), ("hold", "session_lock"), ("installed", "presets"),
            ("limits", "failures"), ("parked", "ending"), ("place", "loop_directory"), ("reading", "logs"),
            ("record", "session"), ("shielded", "detached_run"), ("signals", "session"), ("tool_servers", "permissions"),
            ("transcript", "output"), ("unnoted", "unrecorded_start"), ("streams.progress", "progress"),
            *((f"streams.{name}", "streams") for name in ("claude", "codex", "gemini", "live", "opencode", "text")),
        )
    },
    **{
        f"acp_core.agents.live.{was}": f"acp_core.agents.live.{now}"
        for was, now in (
            ("asking", "answers"), ("attended", "answers"), ("command", "binding"), ("control", "turn"),
            ("journal", "updates"), ("questions", "requests"), ("scoped", "gate"), ("session", "connection"),
            ("shell_commands", "shell"), ("shell_words", "shell"),
        )
    },
    **{
        f"acp_core.stores.{was}": f"acp_core.stores.{now}"
        for was, now in (
            ("crowd", "git_listing"), ("exclusive", "tree"), ("git_hosts", "git"), ("git_making", "git_objects"),
            ("git_words", "git_command"), ("known", "base"), ("known.Known", "base.TipCache"), ("leases", "engine"),
            ("listing", "engine"), ("names", "tree"), ("news", "engine"), ("proof", "asking"), ("silence", "hosts"),
            ("steps", "engine"), ("postgres.followed", "postgres.engine"), ("postgres.news", "postgres.link"),
            ("postgres.overview", "postgres.hosts"), ("postgres.publishing", "postgres.engine"),
            ("postgres.reading", "postgres.engine"), ("postgres.tips", "postgres.engine"),
            ("postgres.watchdog", "postgres.link"), ("postgres.words", "postgres.link"),
        )
    },
}  # fmt: skip
"""Modules of 0.1.0 and 0.2, and names in modules, with what they are called now."""

RENAMED = {"kept": "tracked_files", "told": "past_log"}
"""Methods of 0.1.0's `Collaboration`, with what they are called now."""

_NO_NAME = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_NO_ATTRIBUTE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")


def protocols() -> Iterator[Check]:
    """Each protocol of another distribution: whether it loads, and what it calls otherwise."""
    for entry in entry_points(group=registry.ENTRY_POINTS):
        name = clean_line(entry.dist.name if entry.dist else entry.value)
        found = [clean_line(each, _LONGEST) for each in _problems(entry)]
        value = f"protocol {clean_line(entry.name)}"
        if not found:
            yield Check(_GROUP, name, State.OK, value)
        for problem in found:
            yield Check(_GROUP, name, State.WARN, value, f"{name}: {problem}")


def _problems(entry: EntryPoint) -> Iterator[str]:
    try:
        protocol = entry.load()
        if not isinstance(protocol, registry.Protocol):
            yield f"{entry.value} is not a {_REGISTRY}.Protocol"
            return
        for reference in (protocol.detect, protocol.open, protocol.create, protocol.past):
            if reference is not None:
                registry.load(reference)
    except Exception as error:  # somebody else's code: whatever it raises, it is told
        yield _failure(error)
        return
    yield from _overridden(Collaboration, protocol.open.partition(".")[0].partition(":")[0])


def _failure(error: Exception) -> str:
    """Why it cannot be loaded; of what has moved, where that is now."""
    missing = _missing(error)
    now = _now(missing)
    if now:
        return f"cannot be loaded: {missing} was renamed to {now}"
    return f"cannot be loaded: {type(error).__name__}: {error}"


def _missing(error: Exception) -> str:
    """The dotted name that could not be imported; "" where it was something else."""
    if isinstance(error, ModuleNotFoundError):
        return error.name or ""
    if match := _NO_NAME.match(str(error)):
        return f"{match[2]}.{match[1]}"
    match = _NO_ATTRIBUTE.match(str(error))
    return f"{match[1]}.{match[2]}" if match else ""


def _now(name: str) -> str:
    """What a dotted name of 0.1.0 or 0.2 is called now; "" where that is not known."""
    outer, _, last = name.rpartition(".")
    return MOVED.get(name) or (f"{now}.{last}" if outer and (now := _now(outer)) else "")


def _overridden(kind: type[object], package: str) -> Iterator[str]:
    """Methods of a package's collaborations that nobody calls any more."""
    for each in kind.__subclasses__():
        if each.__module__.partition(".")[0] == package:
            for old, new in RENAMED.items():
                if old in vars(each):
                    yield f"{each.__qualname__}.{old} is never called: it was renamed to {new}"
        yield from _overridden(each, package)
