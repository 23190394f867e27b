"""What conducts sessions for long: a loop, a cycle's orchestrator, the watcher of an agent.

Each has the place of a participant, so that there is one of it, and everybody sees whether it
runs, what it does and its log (`acp_core.agents.registry`). It runs in a terminal, or as a module
in the background (`acp_core.agents.background`), where it outlives whoever started it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from acp_core.agents import background, codec, registry, session_lock
from acp_core.agents.ending import GRACE, Stopped
from acp_core.agents.identity import Identity
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.state import RunnerState, Saved
from acp_core.files import claims
from acp_core.files.claims import Seen
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted
from acp_core.model.text import clean_line, clean_name
from acp_core.person.paths import key_of

CONDUCTOR = "conductor"
"""What stands for the participant where a claim shows who conducts a run."""


@dataclass(frozen=True, slots=True)
class Conductor:
    """One that conducts, or could.

    Attributes:
        folder: the collaboration: a path or a URL.
        name: the participant whose place it takes.
        module: what runs in the background; its `main` calls `background.run`.
        title: what it is called where it cannot be started.
        claim: the name of its claim, where it is not that of the participant.
    """

    folder: str
    name: str
    module: str
    title: str
    claim: str = ""

    @property
    def place(self) -> LoopDirectory:
        """Where it keeps what is its own: its lock, state and log."""
        return place(self.folder, self.name)

    def start(
        self,
        words: tuple[str, ...] = (),
        asked: object = None,
        env: Mapping[str, str] | None = None,
    ) -> RunnerState:
        """Start it in the background, and wait until it runs.

        Args:
            words: the module's arguments.
            asked: a dataclass that says what is asked for, where the module reads one
                (`background.run_asked`).
            env: more environment variables, for what it runs as well.

        Raises:
            NotStarted: it does not run; the message says why.
        """
        over = f"{self.title} ended at once"
        try:
            background.start(self.module, words, b"" if asked is None else codec.encode(asked), env)
        except NotStarted as error:
            raise NotStarted(str(error) or over) from None
        state = self.last()
        if state is None:
            raise NotStarted(over)
        return state

    def last(self) -> RunnerState | None:
        """The one that ran last, whether it still does; None where there never was one."""
        return registry.find(self.folder, self.name)

    def running(self) -> RunnerState | None:
        """The one that runs now."""
        state = self.last()
        return state if state and state.alive and state.shown.ended is None else None

    def holder(self, why: str = "") -> str:
        """Which process it is that runs now, to be put behind a sentence; "" where none does.

        Args:
            why: what is known where the process is not one of this account's.
        """
        state = self.running()
        if state:
            return f" (process {state.pid})"
        return f": {why}" if why else ""

    def elsewhere(self) -> Seen | None:
        """Who holds its claim, or left a program at work, without that our own folder knows it."""

        def unknown_holder() -> Seen | None:
            found = session_lock.seen(self.folder, self.name, self.claim)
            return None if found is None or session_lock.is_known(found, self.last()) else found

        found = unknown_holder()
        return session_lock.settled(unknown_holder) if found and found.mine else found

    def other(self) -> Seen | None:
        """Who else holds its claim, for whoever only looks: as `elsewhere`, and never waits.

        One of this account's that has only just begun is left out: it is soon known.
        """
        found = session_lock.seen(self.folder, self.name, self.claim)
        if found is None or not found.held or session_lock.is_known(found, self.last()):
            return None
        return None if found.mine and session_lock.has_just_begun(found) else found

    def is_held(self) -> bool:
        """Whether its place is taken at this moment, also by one that only just began."""
        found = session_lock.seen(self.folder, self.name, self.claim)
        return self.place.is_locked() or (found is not None and found.held)

    def program_runs(self) -> bool:
        """Whether a program that it started runs, as far as was noted."""
        last = self.last()
        return bool(last and last.program_alive) or session_lock.program_runs(
            self.folder, self.name
        )

    def stop(self, grace: float = GRACE) -> Stopped:
        """Stop it with the program that it runs, and wait until both have ended."""
        return registry.stop(self.folder, self.name, grace=grace, claim=self.claim)


def strangers(folder: str) -> list[Seen]:
    """Those who play participants of a folder without that this account's own folder knows it."""
    if not session_lock.has_claims(folder):
        return []

    def unknown_holders() -> list[Seen]:
        held = [each for each in claims.listed(folder, "loops") if each.held]
        known = {state.pid for state in registry.runners(folder)} if held else set()
        return [each for each in held if not each.owner or each.owner.process.pid not in known]

    found = unknown_holders()

    def still_unknown() -> list[Seen]:
        """Whoever was unknown at every look: others of this account may begin one after another."""
        nonlocal found
        before = {each.path for each in found}
        found = [each for each in unknown_holders() if each.path in before]
        return found

    return session_lock.settled(still_unknown) if found else []


def loops_of_others(folder: str) -> list[RunnerState]:
    """Loops of a folder that only their claims show, and that are at work: they can be stopped."""
    return [_as_loop(folder, each) for each in strangers(folder) if each.owner]


def seen_of_others(folder: str, known: Collection[int] | None = None) -> list[RunnerState]:
    """Loops and conductors of a folder that only their claims show, those that were killed too.

    For whoever only looks: it never waits, so that one of this account's that has only just
    begun is left out.

    Args:
        folder: the collaboration.
        known: process ids of this account's own loops in it; read from its state folder by default.
    """
    if not session_lock.has_claims(folder):
        return []
    found = [*claims.listed(folder, "loops"), claims.seen(folder, claims.CONDUCT)]
    found = [each for each in found if each.owner and (each.held or not each.owner.ended)]
    if known is None:
        known = {state.pid for state in registry.runners(folder)} if found else set()
    return [
        _as_loop(folder, each)
        for each in found
        if each.owner and each.owner.process.pid not in known and not _is_own_past(each)
    ]


def _is_own_past(found: Seen) -> bool:
    """Whether it is one of this account's that just begins, or that ended: nobody else's."""
    return found.mine and (not found.held or session_lock.has_just_begun(found))


def _as_loop(folder: str, found: Seen) -> RunnerState:
    owner = found.owner
    assert owner is not None
    try:
        since = datetime.fromisoformat(owner.since)
    except ValueError:
        since = utc_now()
    process = Identity(owner.process.pid, 0.0)
    is_loop = found.name != claims.CONDUCT
    name = owner.about if is_loop else CONDUCTOR
    account = clean_line(owner.account, 80) or str(owner.uid)
    shown = Saved(
        key_of(folder),
        clean_name(name, 200),
        process,
        since,
        program=clean_line(owner.program, 200),
        since=since,
        note=_note(found, account),
    )
    return RunnerState(
        folder=shown.folder,
        participant=name,
        shown=shown,
        alive=found.held,
        program_alive=found.child is not None,
        log="",
        place="",
        account=account,
    )


def _note(found: Seen, account: str) -> str:
    if not found.held:
        return f"{found.sentence}, but its lock is free: the process was probably killed"
    if found.mine:
        return f"{found.sentence}; your state folder has no record of it"
    return f"{found.sentence}: ask {account}"
