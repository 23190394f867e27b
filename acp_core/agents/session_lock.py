"""What makes a session the only one of its participant, and how it notices that it no longer is.

It holds the claim that lies with the collaboration (`acp_core.files.claims`), which every account
sees that shares the folder, and the lock in this account's own folder. A collaboration that is no
folder, such as a network address, has only the latter.

Loops and conductors that this account's own folder does not know show by their claims: they were
started by another account, or what was noted of them here is gone.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from acp_core.agents.loop_directory import CannotClaim, LoopDirectory, LoopRunning
from acp_core.agents.processes import Identity, Stopped, end, identify
from acp_core.files import claims, requests
from acp_core.files.claims import Claim, ClaimError, Held, Lost, Process, Seen
from acp_core.model.clock import utc_now

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState

_PACE = 0.5  # seconds between two looks at what others asked for


class Locks(NamedTuple):
    """Both locks, open: a process keeps what it holds when it becomes another program with them.

    Attributes:
        claim: of the claim that lies with the collaboration.
        own: of the participant's own place.
    """

    claim: int
    own: int


class Hold:
    """Both are held. Made by `hold`, or by `inherit`."""

    def __init__(
        self, where: LoopDirectory, fd: int, claim: Claim | None, project: str, name: str
    ) -> None:
        self._where, self._fd, self._claim = where, fd, claim
        self._project, self._name = project, name
        self._looked = 0.0
        self._asked = ""

    @property
    def locks(self) -> Locks | None:
        """What is held, to be handed on; None where there is no claim in a folder."""
        return None if self._claim is None else Locks(self._claim.fileno(), self._fd)

    def check(self) -> None:
        """Look whether both are still held; to be called before every act and every start.

        Raises:
            Lost: one is not.
        """
        if self._claim is not None:
            self._claim.check()
        if not claims.is_same(self._where.lock, self._fd):
            raise Lost(
                f"the lock of this run was removed or replaced ({self._where.lock}): "
                "stopped, nothing written"
            )

    def lost(self) -> str:
        """Why it does not hold any more, "" where it does.

        As long as the whole folder is away (renamed, its disk not mounted), nobody can take the
        claim there, and wherever the folder is the lock is still held: that is no loss.
        """
        try:
            self.check()
        except Lost as error:
            away = self._claim is not None and not os.path.isdir(self._project)
            return "" if away else str(error)
        return ""

    def asked_to_stop(self) -> str:
        """Who asked it to stop, from another account; "" where nobody did."""
        if self._claim is None or self._asked or time.monotonic() - self._looked < _PACE:
            return self._asked
        self._looked = time.monotonic()
        for request in requests.pending(self._project, self._name):
            if request.act == requests.STOP and requests.take(request):
                self._asked = f"stopped because {request.account} asked for it"
                requests.answer(request, "done", "Stopping.")
        return self._asked

    def note_child(self, pid: int | None) -> None:
        """Tell others which program was started, so that nobody starts it again beside it."""
        if self._claim is not None:
            with contextlib.suppress(OSError, ClaimError):  # it is noticed at the next look
                self._claim.note_child(pid)


@contextlib.contextmanager
def hold(
    where: LoopDirectory,
    project: str,
    name: str,
    program: str,
    about: str = "",
    adopts: int | None = None,
) -> Iterator[Hold]:
    """Be the only one who plays a participant, or conducts a run.

    Args:
        where: the participant's own place.
        project: the collaboration: a folder or a URL.
        name: the claim's.
        program: what takes it, for people.
        about: the id of the run or cycle.
        adopts: the program that an earlier session left at work and that is taken over.

    Raises:
        LoopRunning: somebody else is; the message says who.
        CannotClaim: claims mean nothing there, or something stands in their place.
        OSError: a file cannot be made.
    """
    with contextlib.ExitStack() as stack:
        claim = None
        if has_claims(project):
            try:
                claim = claims.take(project, name, program, about, adopts=adopts)
            except Held as error:
                raise LoopRunning(str(error)) from None
            except ClaimError as error:
                raise CannotClaim(str(error)) from None
            stack.callback(claim.release)
        fd = stack.enter_context(where.locked())
        yield Hold(where, fd, claim, project, name)


@contextlib.contextmanager
def inherit(where: LoopDirectory, project: str, name: str, locks: Locks) -> Iterator[Hold]:
    """Hold on to what this process held before it became the program that it is now.

    Raises:
        LoopRunning: it does not hold it any more.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, locks.own)
        try:
            claim = claims.inherit(project, name, locks.claim)
        except Lost as error:
            os.close(locks.claim)
            raise LoopRunning(str(error)) from None
        stack.callback(claim.release)
        yield Hold(where, locks.own, claim, project, name)


def has_claims(project: str) -> bool:
    """Whether a collaboration is a folder, in which claims can lie."""
    return "://" not in project and os.path.isdir(project)


_PATIENCE = 3.0  # seconds for which the answer to a request is waited for

_BEGINS = 1.0  # seconds between taking a claim and writing down here what began

_STEP = 0.05

T = TypeVar("T")


def seen(folder: str, participant: str, claim: str = "") -> Seen | None:
    """Who plays a participant, of whichever account; None where nobody does.

    Args:
        folder: the collaboration; one that is no folder of this machine has no claims.
        participant: whose claim.
        claim: the name of the claim, where it is not that of the participant.
    """
    if not has_claims(folder):
        return None
    found = claims.seen(folder, claim or claims.of_participant(participant))
    return found if found.held or found.child else None


def is_known(found: Seen, last: RunnerState | None) -> bool:
    """Whether what a claim shows is what this account's own folder knows of."""
    if last is None or found.owner is None:
        return False
    if found.held:
        return last.pid == found.owner.process.pid
    run = last.run
    return bool(run and found.child and run.process.pid == found.child.pid)


def has_just_begun(found: Seen) -> bool:
    """Whether a claim was taken so lately that what was begun need not be written down yet."""
    try:
        since = datetime.fromisoformat(found.owner.since) if found.owner else None
    except ValueError:
        return False
    return since is not None and utc_now() - since < timedelta(seconds=2 * _BEGINS)


def settled(look: Callable[[], T]) -> T:
    """What a look shows that goes on to show something: whoever just begins is soon known."""
    until = time.monotonic() + _BEGINS
    while (found := look()) and time.monotonic() < until:
        time.sleep(_STEP)
    return found


def program_runs(folder: str, participant: str) -> bool:
    """Whether a program that somebody started for a participant runs, with a loop or without."""
    found = seen(folder, participant)
    return found is not None and found.child is not None


def stop_elsewhere(folder: str, participant: str, claim: str, grace: float) -> Stopped | None:
    """Stop what a claim shows; None where it shows nothing that is at work."""
    found = seen(folder, participant, claim)
    if found is None or found.owner is None:
        return None
    if found.held and not (found.mine and found.owner.process.host == claims.host()):
        return _ask(folder, participant, found, grace)
    if not found.mine:
        return Stopped(False, f"{participant}: {found.owner.account} started its program")
    left = [found.owner.process] if found.held else []
    end([each for each in map(_identity, left) if each], grace)
    child = found.child and _identity(found.child)
    ended = end([child] if child else [], grace, groups=True)
    over = seen(folder, participant, claim) is None
    sentence = "stopped" if ended and over else "could not be stopped"
    return Stopped(ended and over, f"{participant}: {sentence}")


def _ask(folder: str, participant: str, found: Seen, grace: float) -> Stopped:
    try:
        path = requests.ask(folder, found.name, requests.STOP, {})
    except (ClaimError, OSError) as error:
        return Stopped(False, f"{participant}: {found.sentence}; cannot send a request ({error})")
    answer, holder = requests.wait(folder, found.name, path, _PATIENCE)
    if answer is None and holder.held:
        told = "stop requested, no answer yet"
        return Stopped(False, f"{participant}: {found.sentence}; {told}")
    until = time.monotonic() + grace + _PATIENCE
    while seen(folder, participant, found.name) and time.monotonic() < until:
        time.sleep(_STEP)
    if answer is None:
        requests.withdraw(path)
    if seen(folder, participant, found.name):
        return Stopped(False, f"{participant}: {found.sentence}; stop requested, stopping now")
    return Stopped(True, f"{participant}: stopped")


def _identity(process: Process) -> Identity | None:
    """The same process, where it is this very one."""
    return identify(process.pid) if process.alive() else None
