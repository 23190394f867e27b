"""What the acts about loops are bound to: a collaboration's participants, and their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from acp_core.agents import registry
from acp_core.agents.conductor import loops_of_others
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.state import RunnerState
from acp_core.loops import launch
from acp_core.loops.acts.programs import Programs
from acp_core.loops.launch import LaunchError
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.diagnosis import UnmanagedProcess, safe_id


class About:
    """A collaboration's participants, by the ids that people see, and their loops."""

    def __init__(
        self,
        key: str,
        snapshot: Snapshot | None = None,
        loops: Sequence[RunnerState] | None = None,
        strangers: Callable[[], tuple[UnmanagedProcess, ...]] = tuple,
    ) -> None:
        """Make it.

        Args:
            key: the collaboration's.
            snapshot: what was read of it; by default it is read when it is asked for.
            loops: this account's loops; by default they are looked for.
            strangers: gives processes of others that act for a participant.
        """
        self.key = key
        self._snapshot, self._found, self._strangers = snapshot, loops, strangers

    @classmethod
    def of(cls, context: Context) -> About:
        """What an act is bound to, whoever binds it."""
        return context if isinstance(context, About) else cls(context.key)

    @cached_property
    def snapshot(self) -> Snapshot:
        """What was read of the collaboration.

        Raises:
            Refused: there is none, or nobody takes turns in it.
        """
        if self._snapshot is not None:
            return self._snapshot
        try:
            opened = launch.open_folder(self.key)
        except LaunchError as error:
            raise Refused(str(error)) from None
        try:
            if not opened.has_turns:
                raise without_turns(self.key)
            return opened.refresh(utc_now())
        finally:
            opened.close()

    @cached_property
    def loops(self) -> dict[str, RunnerState]:
        """This account's loops by participant, running or not."""
        found = registry.runners(self.key) if self._found is None else self._found
        return {safe_id(loop.participant): loop for loop in found}

    @cached_property
    def all_loops(self) -> Mapping[str, RunnerState]:
        """The same, and those of other accounts that run: one's own that has ended hides none."""
        others = {safe_id(loop.participant): loop for loop in loops_of_others(self.key)}
        return others | {
            name: loop
            for name, loop in self.loops.items()
            if loop.alive or loop.program_alive or name not in others
        }

    @cached_property
    def strangers(self) -> tuple[UnmanagedProcess, ...]:
        """Processes of others that act for a participant."""
        return self._strangers()

    @cached_property
    def programs(self) -> Programs:
        """The programs to choose from."""
        return Programs(self.snapshot, tuple(self.loops.values()))

    @cached_property
    def agents(self) -> list[str]:
        """Participants that are not known to be people."""
        return [each.id for each in self.snapshot.participants if each.kind != "human"]

    def alive(self) -> list[str]:
        """Those whose loop runs."""
        return [name for name, loop in self.loops.items() if loop.alive]

    def without(self) -> list[str]:
        """Agents that have no running loop, those first who are waited for."""
        waited = [turn.participant for turn in self.snapshot.turns]
        free = [name for name in self.agents if name not in self.alive()]
        return sorted(free, key=lambda name: name not in waited)

    def loop(self, name: str) -> RunnerState:
        """The loop of a participant, as it is now.

        Raises:
            Refused: there is none.
        """
        known = self.all_loops.get(name) or self.all_loops.get(safe_id(name))
        if known is None:
            there = (
                f"; participants with a loop: {', '.join(self.all_loops)}" if self.all_loops else ""
            )
            raise Refused(f"{name} has no loop in {self.key}{there}")
        if known.account:
            return known
        return registry.find(known.folder, known.participant) or known


def is_loop(runner: RunnerState) -> bool:
    """Whether a loop takes the participant's turns; else somebody conducts its agent."""
    return LoopDirectory(Path(runner.place)).spec.exists()


def without_turns(folder: str) -> Refused:
    """Why no loop can be started in a collaboration."""
    return Refused(f"{folder}: its participants have no turns for a loop")


def one_of(names: Iterable[str], default: str = "") -> dict[str, Any]:
    """The choices of a field here and now, and the one that it begins with: the first by default."""
    listed = tuple(dict.fromkeys(names))
    first = default if default in listed else next(iter(listed), None)
    return {"choices": listed, "default": first}
