"""Loops and conductors that this account's own folder does not know, but their claims show.

They were started by another account, or what was noted of them here is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from acp_core.agents.ending import Stopped, end
from acp_core.agents.hold import has_claims as has_claims
from acp_core.agents.identity import Identity, identify
from acp_core.files import claims, owners, requests
from acp_core.files.claims import ClaimError, Seen
from acp_core.files.owners import Process
from acp_core.model.clock import utc_now

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState

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
    if found.held and not (found.mine and found.owner.process.host == owners.host()):
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
