"""What other hosts ask of this one: judged, done once, and answered, by the process of ``acp sync``.

What the owner of this host did not allow in the settings is refused. Loops are started, stopped and
told by a process of their own (`acp_core.loops.asked`), so that nobody waits for it; where a
participant acts is changed here. Agents that wait for permission are told of in the state of their
host; the answer is a request to that host, which counts only where who asks is proven.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from acp_core.agents.background import environment
from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest, refuse_inside_a_session
from acp_core.agents.live.requests import ALLOW_ONCE, PermissionRequest
from acp_core.model.errors import Refused
from acp_core.model.text import clean, clean_line
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import shared, sharing
from acp_core.protocols.folder.write.opened import read_protocol
from acp_core.protocols.folder.write.sharing import Wanted
from acp_core.protocols.kit import owner_inputs
from acp_core.protocols.processes import ASKED
from acp_core.stores import address as stores_address
from acp_core.stores import asking, hosts
from acp_core.stores.address import Address
from acp_core.stores.engine import Asked, Engine, HostState, SharingError
from acp_core.stores.hosts import open_engine

_LOOK = 1.0  # seconds between two looks

_SLOW = 5.0  # the same where a look takes long, as over ssh that is not kept open

_LONG = 0.15

_NOTED = 30.0  # seconds between two notes of when a look was

_PATIENCE = 120.0  # seconds for what is asked for

_AT_ONCE = 8  # requests that are being done

_LONGEST = 1_000

_OUTPUT = 1 << 16

_WORDLESS = frozenset({"start", "stop", "take"})  # requests that are a word and a participant


class _Running(NamedTuple):
    """Something that is being done."""

    request: Asked
    process: subprocess.Popen[bytes]
    until: float


def against_proven(request: Asked, address: Address) -> str:
    """Why a request does not count for who asks: only what decides or allows must be proven.

    Raises:
        Refused: it cannot be found out.
    """
    if request.verb not in asking.PROVEN or asking.proven(request, address):
        return ""
    return "who asks is not proven, or the owner of this host did not list them (deciders)"


class Requests:
    """The requests to this host about one collaboration.

    Args:
        folder: the collaboration.
        address: where it is shared.
        engine: its store.
        say: tells whoever runs this process what was asked for, and how it ended.
    """

    def __init__(
        self, folder: str, address: Address, engine: Engine, say: Callable[[str], None]
    ) -> None:
        self.folder, self.address = folder, address
        self._engine, self._say = engine, say
        self._host = hosts.this_host()
        self._ledger = asking.Ledger(address, self._host)
        self._next = 0.0
        self._looked: float | None = None
        self._noted = 0.0
        self._running: list[_Running] = []
        self._untold: dict[str, tuple[Asked, str, str]] = {}

    def finish(self) -> bool:
        """Note how what is being done has ended; whether anything has, so that `check` tells it."""
        before = len(self._running)
        for each in list(self._running):
            self._end(each)
        if len(self._running) == before:
            return False
        self._next = 0.0
        return True

    def check(self) -> None:
        """Look whether something is asked for, where it is time, and answer what was done.

        Raises:
            Refused: the store cannot be reached, or refuses an answer; it is told at the next look.
            OSError: it cannot be noted here what was done.
        """
        began = time.monotonic()
        if began < self._next:
            return
        self._next = began + _LOOK
        if not self._ledger.hold():
            return
        found = self._engine.requests(self._host)
        now = time.monotonic()
        if now - began > _LONG:
            self._next = now + _SLOW
        absence = self._absence(now)
        for request in found:
            if not request.state:
                self._take(request, absence)
        self._tell()

    def close(self) -> None:
        """Let another process of this account do what is asked for from now on."""
        self._ledger.close()

    def _absence(self, now: float) -> float:
        """For how long nobody looked here: what is found now may be as old."""
        if self._looked is not None:
            absence = now - self._looked
            if now - self._noted > _NOTED:
                self._ledger.looked(time.time())
                self._noted = now
        else:
            absence = self._ledger.looked(time.time())
            self._noted = now
        self._looked = now
        return absence

    def _take(self, request: Asked, absence: float) -> None:
        """Do a request, or refuse it; one that was taken up before is only answered."""
        if any(each.request.id == request.id for each in self._running):
            return
        ended = self._ledger.end_of(request.id)
        if ended is not None:
            self._untold[request.id] = (request, *ended)
            return
        if len(self._running) >= _AT_ONCE or not self._ledger.take(request.id):
            return
        if absence > request.seconds:
            self._ended(request, asking.EXPIRED, "this host was away for longer than that")
        elif reason := self._judged(request):
            self._ended(request, asking.REFUSED, reason)
        elif request.verb == "take":
            self._ended(request, *self._taken(request.participant))
        else:
            self._start(request)

    def _judged(self, request: Asked) -> str:
        """Why a request is refused; "" where nothing speaks against it."""
        if request.verb not in (*asking.VERBS, *asking.PROVEN):
            return "this is not a request that this version of acp knows"
        try:
            if (word := asking.ACCEPTS.get(request.verb, request.verb)) not in hosts.accepted():
                return f"the owner of {self._host} does not accept {word} requests"
            if len(request.text) > asking.LONGEST:
                return f"the text is longer than {asking.LONGEST} characters"
            return self.against(request)
        except Refused as error:
            return str(error)

    def against(self, request: Asked) -> str:
        """Why a request that the owner accepts in general is refused all the same; "" for nothing.

        Raises:
            Refused: the same.
        """
        if request.verb == asking.DECIDE:
            return "a decision is an event here: append it"
        if request.participant not in records.participant_ids(read_protocol(self.folder)):
            return "the collaboration has no participant of that name"
        if request.verb in _WORDLESS and request.text.strip():
            owner_inputs.check(request.verb, owner_inputs.names_in(request.text))
        return against_proven(request, self.address)

    def _taken(self, participant: str) -> tuple[str, str]:
        """Have a participant act on this host from now on."""
        try:
            shared.take_lease(self.folder, self._engine, participant, "ask", take=True)
        except SharingError as error:
            return asking.UNKNOWN, str(error)
        except (Refused, OSError) as error:
            return asking.REFUSED, str(error)
        return asking.DONE, f"{participant} acts on {self._host} now"

    def order(self, request: Asked) -> dict[str, Any]:
        """What is done, as `acp_core.loops.asked` takes it."""
        name = asking.proven(request, self.address) if request.verb in asking.PROVEN else ""
        return {
            "folder": self.folder,
            "verb": request.verb,
            "participant": request.participant,
            "text": clean(request.text),
            "by": clean_line(name or asking.who(request), 200),
        }

    def _start(self, request: Asked) -> None:
        order = self.order(request)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", ASKED.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment(),
            start_new_session=True,  # an interrupt of this process is not meant for it
        )
        with contextlib.suppress(OSError):
            assert process.stdin is not None
            process.stdin.write(json.dumps(order).encode())
            process.stdin.close()
        self._running.append(_Running(request, process, time.monotonic() + _PATIENCE))

    def _end(self, running: _Running) -> None:
        """Note how something ended that was being done, if it has."""
        request, process, until = running
        if process.poll() is None:
            if time.monotonic() < until:
                return
            process.kill()
        out = b""
        with contextlib.suppress(OSError):
            assert process.stdout is not None
            out = process.stdout.read(_OUTPUT)
            process.stdout.close()
        process.wait()
        self._running.remove(running)
        try:
            said = json.loads(out)
            state, sentence = str(said["state"]), str(said["sentence"])
        except (ValueError, TypeError, KeyError):
            state, sentence = asking.UNKNOWN, "acp was interrupted while it did this"
        known = state if state in asking.STATES else asking.UNKNOWN
        self._ended(request, known, sentence)

    def _ended(self, request: Asked, state: str, sentence: str) -> None:
        sentence = clean_line(sentence, _LONGEST)
        self._ledger.ended(request.id, state, sentence)
        self._untold[request.id] = (request, state, sentence)
        asked = clean_line(f"{request.verb} {request.participant}", 200)
        self._say(f"{clean_line(asking.who(request), 200)} asks: {asked}: {state}: {sentence}")

    def _tell(self) -> None:
        """Tell the store how requests ended; what cannot be told now is told later."""
        for id, (request, state, sentence) in list(self._untold.items()):
            self._engine.answer(request, state, sentence)
            del self._untold[id]


class MirrorRequests(Requests):
    """The requests to this host about the collaboration that it conducts."""

    def against(self, request: Asked) -> str:
        """Why a request is refused; "" where nothing speaks against it."""
        if request.verb in asking.PERMITS:
            return against_proven(request, self.address)
        if request.verb not in ("stop", asking.DECIDE):
            return "a mirrored run can be asked to stop or to decide, or to answer an agent"
        if reason := against_proven(request, self.address):
            return reason
        if _given(request).get("mirror") != stores_address.pinned_mark(self.folder):
            return "the request is about another run"
        return ""

    def order(self, request: Asked) -> dict[str, Any]:
        """What is done, as `acp_core.loops.asked` takes it."""
        order = super().order(request)
        if request.verb in asking.PERMITS:
            return order
        given = _given(request)
        return order | {"verb": "act", "text": json.dumps(
            {"values": given.get("values"), "matter": given.get("matter", ""), "verb": request.verb}
        )}  # fmt: skip


def _given(request: Asked) -> dict[str, Any]:
    try:
        value = json.loads(request.text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


KEY = "permissions"
"""In what a host says of a participant: what its agent waits with."""

_MOST = 10

_LONGEST_REQUEST = 1_500  # characters of a command

_MOST_PATHS = 10

_ID = re.compile(r"[0-9a-f]{16}")

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Waiting(NamedTuple):
    """A request for permission as its host tells of it.

    ``words`` say what is asked for; ``whole`` is whether that is all of it: what is not shown whole
    can be rejected from elsewhere, and not be allowed.
    """

    id: str
    digest: str
    participant: str
    words: str
    whole: bool


def waiting_agents(folder: str) -> dict[str, list[dict[str, Any]]]:
    """What agents of this host wait with in a collaboration, by participant, for the others."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in answers.waiting(folder)[:_MOST]:
        found.setdefault(each.participant, []).append(_described(each))
    return found


def _described(opened: OpenRequest) -> dict[str, Any]:
    request = opened.request
    text = _words(request)
    whole = len(text) <= _LONGEST_REQUEST and text == clean(text) and not (
        request.diffs or request.doubts or request.questions or request.server
    )  # fmt: skip
    possible = request.option(ALLOW_ONCE) is not None
    return {
        "id": opened.id,
        "digest": opened.digest,
        "words": clean(text)[:_LONGEST_REQUEST],
        "whole": whole and possible,
    }


def _words(request: PermissionRequest) -> str:
    if request.command is not None:
        where = f" (in {request.workdir})" if request.workdir else ""
        return f"run: {request.command}{where}"
    if request.questions:
        return f"answer: {request.questions[0].text}"
    paths = ", ".join(request.locations[:_MOST_PATHS])
    return f"{request.tool or request.kind or request.title}: {paths}"


def waiting(state: HostState) -> list[Waiting]:
    """What a host says that its agents wait with; a stranger's word, safe to show."""
    found = []
    for name, facts in state.participants.items():
        listed = facts.get(KEY) if isinstance(facts, Mapping) else None
        for each in listed[:_MOST] if isinstance(listed, list) else ():
            if (made := _waiting(name, each)) is not None:
                found.append(made)
    return found


def _waiting(participant: str, value: Any) -> Waiting | None:
    if not isinstance(value, Mapping):
        return None
    id, digest, words = (value.get(name) for name in ("id", "digest", "words"))
    if not (isinstance(id, str) and isinstance(digest, str) and isinstance(words, str)):
        return None
    if not (_ID.fullmatch(id) and _DIGEST.fullmatch(digest)):
        return None
    shown = clean_line(words, 2 * _LONGEST_REQUEST)
    return Waiting(id, digest, participant, shown, value.get("whole") is True and shown == words)


def answer(folder: str, wanted: Wanted) -> Asked:
    """Answer an agent of another host; the request as it stands then.

    Args:
        folder: a shared folder, or a mirror.
        wanted: whom is asked; ``participant`` is the id of what the agent waits with, as its host says.

    Raises:
        Refused: nothing of that id waits there, it cannot be allowed from here, or not by this process.
    """
    refuse_inside_a_session()
    sharing.checked(folder, wanted)
    address = stores_address.pinned_address(folder)
    by = f"{hosts.account()} on {hosts.this_host()}"
    with open_engine(address) as engine:
        states = (each.state for each in engine.hosts())
        found = found_in(states, wanted.host, wanted.participant)
        if wanted.verb == asking.ALLOW and not found.whole:
            raise Refused(
                f"{clean_line(wanted.host, 80)} does not show the whole request: answer it there, or reject it"
            )
        given = {"id": found.id, "digest": found.digest, "message": wanted.text}
        request = asking.about(wanted.host, wanted.verb, found.participant, given, by)
        request = asking.signed(request._replace(seconds=wanted.seconds), address)
        asking.send(engine, request)
        return sharing.answered(engine, request, wanted.wait)


def found_in(states: Iterable[HostState], host: str, id: str) -> Waiting:
    """What waits on a host under an id.

    Raises:
        Refused: nothing does.
    """
    there = [each for state in states if state.host == host for each in waiting(state)]
    for each in there:
        if each.id == id:
            return each
    known = ", ".join(each.id for each in there) or "none"
    raise Refused(
        f"no agent on {clean_line(host, 80)} waits with request {clean_line(id, 80)} (waiting: {known})"
    )
