"""Requests and questions that wait for a person, their answers, and who may give them.

They are files in the account's state folder. No session may write there: it is neither the
collaboration's folder nor the drafts'. Whoever holds a session publishes a request and waits; anybody
of the account lists it and answers it, once, for exactly what was shown. Who comes first counts, a
person or the end of the time: both make the same file, which can be made only once. A request whose
publisher has ended is open no more; so is a participant's question. A person is there to answer who
has used a terminal or a page of this account lately. A terminal that merely stays open overnight says
nothing, nor does one that an agent opened for itself. A dashboard in a browser has no terminal: it
notes when somebody uses it. A process that a participant's program started decides
nothing for people: that stops a program that is confined, and one that answers its own requests by
mistake; it does not stop one that may start processes which nothing ties to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from glob import glob
from pathlib import Path

import psutil

from acp_core.agents import codec, registry
from acp_core.agents.live.requests import AgentQuestion, Choice, PermissionRequest
from acp_core.agents.live.turn import MARK, Files
from acp_core.agents.loop_directory import permissions as root
from acp_core.agents.loop_directory import place
from acp_core.agents.processes import Identity, identify, myself
from acp_core.files import atomic, claims
from acp_core.files.secrets import mask
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import paths
from acp_core.person.paths import key_of
from acp_core.person.permissions import Verdict

ATTENDED = timedelta(minutes=15)

"""How long a request waits where somebody is there to answer; elsewhere it waits for ever."""

LARGEST = 16 << 20  # bytes of the record of answers; then a new one is begun

ACP = "acp"

"""Who answers where no person did: by the policy, or because the time is over."""

ANSWERED = "answered"

"""How a question is recorded that a person answered; one that nobody answered is rejected."""

_LATE = f"no person answered within {ATTENDED.total_seconds() / 60:.0f} minutes"

_NAME = re.compile(r"([0-9a-f]{16})\.json")

_LONGEST = 2_000  # characters of a command or a message that are recorded


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that waits for an answer.

    Attributes:
        id: by which it is answered; names its files.
        folder: the collaboration's key.
        participant: whose program asks.
        request: what it asks.
        publisher: the process that waits for the answer.
        asked: since when it waits.
        until: when it is rejected; None for never.
        turn: what the turn is about.
        program: the program's title.
        ends_turn: whether the program ends its turn when it is rejected.
        why: why the policy did not decide it.
    """

    id: str
    folder: str
    participant: str
    request: PermissionRequest
    publisher: Identity
    asked: datetime
    until: datetime | None = None
    turn: str = ""
    program: str = ""
    ends_turn: bool = False
    why: str = ""

    @property
    def digest(self) -> str:
        """Changes with anything that a person is shown."""
        return hashlib.sha256(codec.encode(self)).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. ``by`` is who gave it, or `ACP`; ``message`` is for the program's next prompt."""

    digest: str
    verdict: Verdict
    by: str
    at: datetime
    message: str = ""


def publish(
    folder: str,
    participant: str,
    request: PermissionRequest,
    *,
    attended: bool,
    turn: str = "",
    program: str = "",
    ends_turn: bool = False,
    why: str = "",
) -> OpenRequest:
    """Have a person asked. This process must wait for the answer: see `taken` and `close`.

    Args:
        folder: the collaboration.
        attended: whether somebody is there to answer in time.
        participant, request, turn, program, ends_turn, why: as those of an `OpenRequest`.

    Raises:
        OSError: it cannot be written.
    """
    now = utc_now()
    made = OpenRequest(
        secrets.token_hex(8),
        key_of(folder),
        participant,
        request,
        myself(),
        now,
        now + ATTENDED if attended else None,
        turn,
        program,
        ends_turn,
        why,
    )
    atomic.private_folder(root())
    _sweep()
    atomic.create(_path(made.id), codec.encode(made), private=True)
    return made


def waiting(folder: str | None = None) -> tuple[OpenRequest, ...]:
    """The requests that wait for an answer, those of one collaboration or all, oldest first."""
    key = None if folder is None else key_of(folder)
    found = [each for each in _published() if key in (None, each.folder) and _is_open(each)]
    return tuple(sorted(found, key=lambda each: each.asked))


def answer(
    opened: OpenRequest, verdict: Verdict, by: str, now: datetime, message: str = ""
) -> Answer:
    """Answer a request, as it was shown.

    Args:
        opened: what was shown.
        verdict: allow or reject.
        by: who answers.
        now: the time.
        message: what the program is told in its next prompt.

    Raises:
        Refused: it is no longer open, is not what was shown, or somebody has answered it.
        OSError: the answer cannot be written.
    """
    published = _read(opened.id)
    if published is None or not published.publisher.alive():
        raise Refused("this request is no longer open")
    if published.until is not None and published.until <= now:
        raise Refused("the time for this request is over: acp rejected it")
    if published.digest != opened.digest:
        raise Refused("this request is not the one that was shown: look at it again")
    given = Answer(opened.digest, verdict, by, now, message)
    try:
        atomic.create(_answer_path(opened.id), codec.encode(given), private=True)
    except FileExistsError:
        raise Refused("this request has been answered already") from None
    return given


def taken(opened: OpenRequest, now: datetime) -> Answer | None:
    """The answer to a request that this process published; None as long as there is none.

    Where the time is over, the request is rejected, unless somebody answers at the same moment.

    Raises:
        OSError: the rejection cannot be written.
    """
    found = _read_answer(opened)
    if found is not None or opened.until is None or now < opened.until:
        return found
    late = Answer(opened.digest, Verdict.REJECT, ACP, now, _LATE)
    with contextlib.suppress(FileExistsError):
        atomic.create(_answer_path(opened.id), codec.encode(late), private=True)
    return _read_answer(opened)


def is_published(opened: OpenRequest) -> bool:
    """Whether a request's publisher has not closed it yet."""
    return _path(opened.id).exists()


def close(opened: OpenRequest, given: Answer | None) -> None:
    """Record what came of a request, and take its files away.

    Args:
        opened: the request.
        given: its answer; None where the program does not wait for it any more.
    """
    if given is None:
        record(opened.folder, opened.participant, opened.request, "withdrawn", ACP, utc_now())
    else:
        is_answered = opened.request.questions and given.message and given.by != ACP
        state, by = ANSWERED if is_answered else given.verdict.value, given.by
        record(
            opened.folder, opened.participant, opened.request, state, by, given.at, given.message
        )
    _remove(opened.id)


def record(
    folder: str,
    participant: str,
    request: PermissionRequest,
    state: str,
    by: str,
    now: datetime,
    message: str = "",
) -> None:
    """Record how a request was answered, by a person or by a policy. A full disk loses it.

    Args:
        folder: the collaboration.
        participant: whose program asked.
        request: what it asked.
        state: allow, reject, withdrawn, or `ANSWERED`.
        by: who answered, or `ACP`.
        now: when.
        message: what the program is told, or why the policy said so.
    """
    line = {
        "schema": "acp.permission/1",
        "at": now.isoformat(),
        "collaboration": key_of(folder),
        "participant": participant,
        "session": request.session,
        "tool_call": request.tool_call,
        "digest": request.digest,
        "command": mask((request.command or "")[:_LONGEST]),
        "paths": list(request.locations),
        "tool": f"{request.server}/{request.tool}" if request.tool else "",
        "question": mask(request.questions[0].text[:_LONGEST]) if request.questions else "",
        "state": state,
        "by": by,
        "message": mask(message[:_LONGEST]),
    }
    place = root() / "answered.jsonl"
    with contextlib.suppress(OSError):
        atomic.private_folder(place.parent)
        fd = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, json.dumps(line, ensure_ascii=True).encode() + b"\n")
            full = os.fstat(fd).st_size > LARGEST
        finally:
            os.close(fd)
        if full:
            os.replace(place, place.with_name("answered.1.jsonl"))


def _published() -> Iterator[OpenRequest]:
    try:
        names = os.listdir(root())
    except OSError:
        return
    for match in filter(None, map(_NAME.fullmatch, names)):
        found = _read(match[1])
        if found is not None:
            yield found


def _read(id: str) -> OpenRequest | None:
    with contextlib.suppress(codec.CodecError):
        found = codec.read(OpenRequest, _path(id))
        return found if found.id == id else None
    return None


def _is_open(request: OpenRequest) -> bool:
    return not _answer_path(request.id).exists() and request.publisher.alive()


def _read_answer(opened: OpenRequest) -> Answer | None:
    with contextlib.suppress(codec.CodecError):
        found = codec.read(Answer, _answer_path(opened.id))
        return found if found.digest == opened.digest else None
    return None


def _sweep() -> None:
    """Take away what publishers left that were killed."""
    for each in _published():
        if not each.publisher.alive():
            close(each, _read_answer(each))
    for path in root().glob("*.answer"):
        if not path.with_suffix(".json").exists():
            path.unlink(missing_ok=True)


def _remove(id: str) -> None:
    for path in (_path(id), _answer_path(id)):  # in this order: an answer alone opens nothing
        path.unlink(missing_ok=True)


def _path(id: str) -> Path:
    return root() / f"{id}.json"


def _answer_path(id: str) -> Path:
    return root() / f"{id}.answer"


_LOOK = 0.25  # seconds between two looks whether somebody answered

_MOST = 20

"""Questions of one process that may be open at the same time."""


class Questions:
    """The open questions of this process.

    Args:
        stopping: is set when the process is about to end: then nothing waits any more.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str, str, tuple[str, ...]], OpenRequest] = {}

    def ask(
        self, folder: str, participant: str, text: str, choices: Sequence[str], seconds: float
    ) -> Answer | None:
        """Ask a person, or go on waiting where the same question is open.

        Args:
            folder: the collaboration.
            participant: who asks.
            text: the question.
            choices: answers that it offers; a person can always write another one.
            seconds: how long to wait.

        Returns:
            The answer, whose message is "" where the person declined; None where there is none yet.

        Raises:
            Refused: too many others are open.
            OSError: the question cannot be written.
        """
        key = (folder, participant, text, tuple(choices))
        with self._lock:
            opened = self._open.get(key)
            if opened is None:
                if len(self._open) >= _MOST:
                    raise Refused("too many of your questions are open: wait for their answers")
                question = AgentQuestion(text, choices=tuple(map(Choice, choices)))
                request = PermissionRequest(questions=(question,))
                why = "it is a question to a person"
                opened = publish(folder, participant, request, attended=False, why=why)
                self._open[key] = opened
        given = self._wait(opened, seconds)
        if given is not None:
            with self._lock:
                if self._open.pop(key, None) is not None:
                    close(opened, given)
        return given

    def _wait(self, opened: OpenRequest, seconds: float) -> Answer | None:
        deadline = time.monotonic() + seconds
        while (given := taken(opened, utc_now())) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self._stopping.wait(min(_LOOK, left)):
                return None
        return given

    def close(self) -> None:
        """Take back all open questions: nobody waits for their answers any more."""
        with self._lock:
            while self._open:
                _, opened = self._open.popitem()
                with contextlib.suppress(OSError):
                    close(opened, None)


def is_attended(now: datetime) -> bool:
    """Whether a person was there in the last minutes, as many as a request waits then."""
    since = now.timestamp() - ATTENDED.total_seconds()
    page = page_used()
    if page is not None and page >= since:
        return True
    return any(used >= since for used in terminals().values())


def note_page_used() -> None:
    """Note that somebody uses a dashboard in a browser now; a full disk loses that."""
    path = _page()
    with contextlib.suppress(OSError):
        atomic.private_folder(path.parent)
        path.touch(mode=0o600)


def page_used() -> float | None:
    """When somebody used a dashboard in a browser last (seconds since 1970); None for never."""
    try:
        return _page().stat().st_mtime
    except OSError:
        return None


def _page() -> Path:
    return paths.state_folder() / "page-used"


def terminals() -> dict[str, float]:
    """The terminals of this account's people, and when each was typed into last (seconds since 1970)."""
    found: set[str] = set()
    of_agents: set[str] = set()
    names = _names() if psutil.LINUX else None
    for process in psutil.process_iter():
        try:
            terminal = process.terminal() if names is None else names.get(_device(process.pid))
            if terminal is None or process.uids().real != os.getuid():
                continue
            (of_agents if MARK in process.environ() else found).add(terminal)
        except (psutil.Error, OSError):
            continue
    used = {name: _used(name) for name in found - of_agents}
    return {name: at for name, at in used.items() if at is not None}


def _names() -> dict[int, str]:
    """The terminals that are there now, by the number of their device.

    psutil goes on with those that were there when it was asked first: what is opened later has no name.
    """
    numbers = {}
    for name in (*glob("/dev/tty*"), *glob("/dev/pts/*")):
        with contextlib.suppress(OSError):
            numbers[os.stat(name).st_rdev] = name
    return numbers


def _device(pid: int) -> int:
    """The number of the terminal of a process; 0 where it has none (proc_pid_stat(5), field 7)."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[4])


def _used(terminal: str) -> float | None:
    """When a terminal was typed into: the system notes it as its time of access."""
    try:
        return os.stat(terminal).st_atime
    except OSError:
        return None


def refuse_inside_a_session() -> None:
    """Refuse where the environment or an ancestor of this process marks a session.

    Raises:
        Refused: one does.
    """
    if MARK in os.environ or _is_below_a_session(psutil.Process().parents()):
        raise Refused(
            "an agent's session cannot decide this: run the command in a terminal of your own"
        )


def refuse_another_participant(folder: str, participant: str) -> None:
    """Refuse to act as somebody else from inside a session, while that one's own program works.

    Args:
        folder: the collaboration.
        participant: as whom this process wants to act.

    Raises:
        Refused: it is inside another one's session.
    """
    _, own = Files(place(folder, participant)).mark
    above = map(_mark_of, psutil.Process().parents())
    marks = {os.environ.get(MARK, ""), *above} - {""}
    if not marks or own in marks or "://" in folder:
        return
    if claims.seen(folder, claims.of_participant(participant)).held:
        raise Refused(f"another program takes the turns of {clean_line(participant)}")


def _is_below_a_session(ancestors: Iterable[psutil.Process]) -> bool:
    running = {each.publisher for each in waiting()}
    for loop in registry.runners():
        if loop.run is not None and loop.program_alive:
            running.add(loop.run.process)
    return any(_has_mark(each) or identify(each.pid) in running for each in ancestors)


def _has_mark(process: psutil.Process) -> bool:
    return bool(_mark_of(process))


def _mark_of(process: psutil.Process) -> str:
    """The place of the session that started a process; "" where none did."""
    try:
        return process.environ().get(MARK, "")
    except (psutil.Error, OSError):  # another account's
        return ""
