"""``acp record``: keep the history of collaborations, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from acp_core.cli.opening import sort_out
from acp_core.cli.output import complain, say, warn
from acp_core.cli.start import chosen_paths, load_settings
from acp_core.cli.watch import Watching
from acp_core.files import interrupts
from acp_core.fleet import Fleet
from acp_core.history import library
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Bounds
from acp_core.model import Snapshot, format
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import SearchRoot


def record(given: Values) -> int:
    """Record until it is over, or interrupted.

    Raises:
        CommandError: there is no collaboration, or not everything was recorded.
    """
    settings = load_settings()
    good, problems = sort_out(chosen_paths(given.paths, settings))
    for problem in problems:
        complain(problem)
    if not good:
        return 2
    bounds = replace(Bounds.of(settings.recording), on=True)  # it was asked for
    recorder = Recorder("record", bounds)
    if given.once:
        found = Fleet(good, recorder=recorder).read()
        recorder.close()
        for snapshot in found:
            say(_describe_recording(snapshot))
    else:
        found = interrupts.run_loop(lambda: _follow(good, recorder, given.until_over))
    if not found:
        raise CommandError(f"no collaboration in or below {', '.join(map(str, good))}")
    if recorder.problem:
        raise CommandError(f"some changes were not recorded: {recorder.problem}")
    return 2 if problems else 0


async def _follow(
    paths: list[SearchRoot], recorder: Recorder, until_over: bool
) -> tuple[Snapshot, ...]:
    """Record until it is over, or for ever; says which collaborations, as they are found."""
    fleet = Fleet(paths, recorder=recorder)
    watching = Watching(lambda snapshot, change: None)
    known: set[str] = set()
    problem = ""
    try:
        async for batch in fleet.changes():
            watching.take(batch)
            for snapshot in batch.snapshots:
                if snapshot.key not in known:
                    known.add(snapshot.key)
                    say(f"recording {snapshot.name} ({snapshot.location})", now=True)
            if recorder.problem != problem:
                problem = recorder.problem
                warn(problem or "recording continues")
            if batch.complete and until_over and (not known or watching.over()):
                break
    finally:
        await fleet.close()
    return tuple(fleet.snapshots.values())


def _describe_recording(snapshot: Snapshot) -> str:
    store = library.find(snapshot.key)
    if store is None:
        return f"nothing recorded of {snapshot.name}: it cannot be read ({snapshot.source.note})"
    try:
        count = len(store.versions())
    finally:
        store.close()
    return f"recorded {snapshot.name}: {format.count(count, 'version')} of its files"
