"""What a loop is asked to do: kept beside its state, so that it can be started again.

Its budgets may be changed by a person while it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from acp_core.agents import codec, limits
from acp_core.agents.budgets import Cap
from acp_core.agents.live import binding
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.presets import Preset, PresetError, parse
from acp_core.agents.program import Program
from acp_core.files.reading import stamp
from acp_core.model.turn import Brief, Mode

_LONGEST_PAUSE = 300.0


class Restart(str, Enum):
    """When a program is run again for a turn that it did not take.

    ``ON_FAILURE``: as often as the limit says. ``ALWAYS``: without a limit, and a program that
    takes part alone also when it ended well. ``NEVER``: not at all.
    """

    NEVER = "never"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a loop is asked to do.

    Attributes:
        folder: the collaboration: a real path or a URL.
        participant: whose turns are taken.
        name: the preset's name; ``preset`` the preset itself, as a table.
        program: the program's absolute path; ``version`` what it said when it was asked.
        model: which model, "" for the program's own choice.
        workdir: where the program runs.
        mode: how it takes part.
        restart: when it is run again.
        retries: how often at most for one turn, after the first run.
        pause: seconds before the first of those; each further pause is longer.
        turn_limit: seconds that a turn may take, None for no limit.
        deadline: when the loop ends whatever happened, None for never.
        interval: seconds between two looks while it waits.
        linger: seconds that a program may go on after all was done.
        caps: how much its programs may take.
        once: a program of its own for each attempt, although it could hold a live session.
        permissions: the policy for what its live session asks; "" for that of the settings.
        leave: end the loop where it would otherwise give up and wait for a person.
        goes_on: an interrupted loop is started again: what it waited for, it waits for still.
    """

    folder: str
    participant: str
    name: str = "command"
    preset: dict[str, object] = field(default_factory=dict)
    program: str = ""
    version: str = ""
    model: str = ""
    workdir: str = ""
    mode: Mode = Mode.TURN
    restart: Restart = Restart.ON_FAILURE
    retries: int = 3
    pause: float = limits.FIRST_PAUSE
    turn_limit: float | None = None
    deadline: datetime | None = None
    interval: float = 1.0
    linger: float = 60.0
    leave: bool = False
    caps: tuple[Cap, ...] = ()
    once: bool = False
    permissions: str = ""
    goes_on: bool = False

    def resolved(self) -> Preset:
        """The preset.

        Raises:
            PresetError: it is not what it should be.
        """
        return parse(self.name, self.preset)

    def chosen(self) -> Program:
        """The program, as it is run.

        Raises:
            PresetError: its preset is not what it should be.
        """
        preset = self.resolved()
        why = self.not_live(preset) if preset.live else ""
        return Program(
            preset,
            self.folder,
            self.workdir,
            self.program,
            self.model,
            self.version,
            live=bool(preset.live) and not why,
            not_live=why,
        )

    def live(self, preset: Preset) -> str:
        """Whether turns are taken in a live session, as `Saved` says it."""
        if not preset.live:
            return ""
        why = self.not_live(preset)
        return f"no: {why}" if why else "yes"

    def not_live(self, preset: Preset) -> str:
        """Why turns are not taken in a live session, for a program that could; "" where they are."""
        if self.mode is not Mode.TURN and not self.once:
            return f"not possible with mode {self.mode.value!r}"
        return binding.missing(preset, self.workdir, self.model, once=self.once)

    def brief(self, place: LoopDirectory, commands: str) -> Brief:
        """What every prompt of this loop is made for."""
        return Brief(mode=self.mode, commands=commands, drafts=str(place.drafts))

    @property
    def attempts(self) -> int:
        """How many runs a turn gets at most; 0 for as many as it needs."""
        if self.restart is Restart.ALWAYS:
            return 0
        return 1 if self.restart is Restart.NEVER else 1 + max(0, self.retries)

    def pause_after(self, attempt: int) -> float:
        """Seconds between a run that failed and the next."""
        return limits.pause_after(attempt, self.pause, _LONGEST_PAUSE)

    def wait_after(self, waits: int) -> float:
        """Seconds until a model service is tried again that failed so many times in a row."""
        return limits.pause_after(waits, self.pause)


def save(spec: Spec, place: LoopDirectory) -> None:
    """Keep a spec in the loop's place.

    Raises:
        OSError: it cannot be written.
    """
    codec.write(place.spec, spec)


def load(place: LoopDirectory) -> Spec | None:
    """The spec that is kept in a loop's place; None where there is none that can be used."""
    try:
        spec = codec.read(Spec, place.spec)
        spec.resolved()
    except (codec.CodecError, PresetError):
        return None
    return spec


def caps_in(where: LoopDirectory, spec: Spec) -> Callable[[], tuple[Cap, ...]]:
    """What gives the caps of a loop as they are now; its spec is read again when it changes.

    Args:
        where: the loop's place.
        spec: what the loop was asked to do.
    """
    seen: object = None
    caps = spec.caps

    def read() -> tuple[Cap, ...]:
        nonlocal seen, caps
        found = stamp(where.spec)
        if found != seen:
            seen = found
            saved = load(where)
            caps = saved.caps if saved else caps
        return caps

    return read
