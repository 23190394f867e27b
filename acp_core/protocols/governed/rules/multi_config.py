"""The rules for ``agentxchain-multi.json``, in the specification's layout and the existing one.

Source: governed protocol specification, "Coordinator config"; what the other layout may combine
follows the shapes that the existing program checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core import model
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import OWN, Initiative, existing_streams
from acp_core.protocols.governed.read.initiative_plan import plan_of
from acp_core.protocols.governed.rules.finding import Trouble
from acp_core.protocols.governed.schema import objects
from acp_core.protocols.governed.schema.coordinator import StreamConfig

KINDS = (
    "all_repos_accepted",
    "ordered_repo_sequence",
    "interface_alignment",
    "named_decisions",
    "shared_human_gate",
)


def check_config(initiative: Initiative) -> list[Trouble]:
    """Everything that is wrong with the configuration."""
    if initiative.config.reason:
        return []
    if initiative.layout == OWN:
        try:
            plan_of(initiative.config.value)
        except Refused as error:
            return [_trouble(str(error).removeprefix(f"{schema.MULTI_CONFIG}: "))]
        streams = {stream.name: stream for stream in initiative.settings.workstreams}
        return [_trouble(problem) for problem in _circles(streams)]
    return [_trouble(problem) for problem in (*_existing(initiative), *_alignment(initiative))]


def _trouble(problem: str) -> Trouble:
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
        if stream.barrier and stream.barrier not in KINDS:
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
