"""What makes a session the only one of its participant, and how it notices that it no longer is.

It holds the claim that lies with the collaboration (`acp_core.files.claims`), which every account
sees that shares the folder, and the lock in this account's own folder. A collaboration that is no folder, such as a network address, has only the latter.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from acp_core.agents.place import CannotClaim, LoopRunning, Place
from acp_core.files import claims, requests
from acp_core.files.claims import Claim, ClaimError, Held, Lost

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

    def __init__(self, where: Place, fd: int, claim: Claim | None, project: str, name: str) -> None:
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
    where: Place, project: str, name: str, program: str, about: str = "", adopts: int | None = None
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
def inherit(where: Place, project: str, name: str, locks: Locks) -> Iterator[Hold]:
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
