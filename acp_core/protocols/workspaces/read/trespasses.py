"""Who wrote where it may not: into another agent's workspace, or into the integration.

Source: agent workspaces specification, "Conflict Prevention via Agent-Namespaced Paths". An agent
is not blamed for what another one did to its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from acp_core.files.records import File
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Agent, Trespass, coord
from acp_core.protocols.workspaces.schema.coord import Report

_SLACK = timedelta(seconds=schema.TORN_SECONDS)
_TICK = timedelta(milliseconds=10)  # the manifest's times are cut to milliseconds


def of(agents: Iterable[Agent], files: Iterable[File], base: str) -> tuple[Trespass, ...]:
    """Every trespass whose file still stands there as it was written.

    Args:
        agents: of the run.
        files: of the run.
        base: the name of the folder of the workspaces.
    """
    known = {agent.name: agent for agent in agents}
    there = {file.name: file for file in files}
    found: dict[tuple[str, str], Trespass] = {}
    for agent in known.values():
        for each in (*_seen(agent, there), *_listed(agent), *_signed(agent, known)):
            first, _, rest = each.file.name.partition("/")
            owner = rest.partition("/")[0] if first == base else ""
            victim = owner if owner in known and owner != each.by else ""
            found.setdefault((each.by, each.file.name), each._replace(victim=victim))
    return tuple(each for each in found.values() if each.victim or _integrates(each.file))


def _integrates(file: File) -> bool:
    return file.name.startswith("integration/")


def _seen(agent: Agent, there: dict[str, File]) -> Iterator[Trespass]:
    """What changed outside of its workspace while it worked, and was not changed since."""
    over = agent.plan.ended_at
    others = agent.plan.outside_while
    for name in agent.plan.outside:
        file = there.get(name)
        if file is not None and over is not None and file.changed <= over + _TICK:
            how = f"{name} changed while {agent.name} worked"
            yield Trespass(agent.name, others, file, "", how, not others)


def _listed(agent: Agent) -> Iterator[Trespass]:
    """What it says itself that it wrote."""
    if agent.status is None:
        return
    back = agent.returned.listed if agent.returned else ()
    for each in (*agent.outputs, *back):
        file = each.file
        if file is None or each.owner == agent.name:
            continue
        if file.changed <= agent.status.file.changed + _SLACK:
            how = f"{agent.name} lists {file.name} as its own"
            yield Trespass(agent.name, (), file, "", how, True)


def _signed(agent: Agent, known: dict[str, Agent]) -> Iterator[Trespass]:
    """A status file in its workspace that bears another agent's name."""
    for record in agent.records:
        signer = coord.decode(Report, record).agent
        if signer in known and signer != agent.name:
            how = f"{record.file.name} names {signer}"
            yield Trespass(signer, (), record.file, "", how, False)


def done_to(agent: Agent, trespasses: Iterable[Trespass]) -> tuple[Trespass, ...]:
    """Those by which an agent's result is no longer what it wrote: its status, or an output."""
    own = {each.file.name for each in agent.results if each.file}
    own |= {agent.status.file.name} if agent.status else set()
    return tuple(each for each in trespasses if each.victim == agent.name and each.file.name in own)


def who(trespasses: Iterable[Trespass]) -> str:
    """Whoever wrote, or may have written, these files; safe to show."""
    names = dict.fromkeys(name for each in trespasses for name in (each.by, *each.others))
    return clean_line(" or ".join(names), 200)
