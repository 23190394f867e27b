"""What hosts ask of each other: made here, taken up once, and answered; see `Engine.ask`.

Who asks is a stranger: over git it is proven by nothing. So a request names a verb and a
participant, and never a command, a path or an argument; what it leads to is what this host's owner
did here before, and allowed. How long a request is of use counts on the clock of who is asked, from
when it is first seen; what is found after a longer absence has expired. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.locked import LogError, locked
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.person.paths import state_folder
from acp_core.stores.address import POSTGRES, Address
from acp_core.stores.engine import Asked, Engine, InDoubt

try:
    import fcntl
except ImportError:  # Windows: nothing can be run there
    fcntl = None  # type: ignore[assignment]

_SUPPORTED = fcntl is not None

VERBS = ("start", "stop", "nudge", "take")
"""What is asked for about a participant's loop."""

DECIDE, ALLOW, REJECT = "decide", "allow", "reject"

PERMITS = (ALLOW, REJECT)

ACCEPTS = {ALLOW: "permit", REJECT: "permit"}
"""The word by which an owner accepts a request, where it is not the request's own."""

PROVEN = frozenset({DECIDE, *PERMITS})
"""What counts only where who asks is proven."""

DONE, REFUSED, EXPIRED, UNKNOWN = "done", "refused", "expired", "unknown"

STATES = (DONE, REFUSED, EXPIRED, UNKNOWN)

LONGEST = 2_000  # characters of a text

LIFE = 600.0  # seconds

LONGEST_LIFE = 86_400.0

_MOST = 200  # requests whose end is remembered; beside them as many that are dated ahead

_LIMIT = 1 << 20

_PATIENCE = 60.0


def made(host: str, verb: str, participant: str, text: str, by: str, seconds: float) -> Asked:
    """A new request.

    Raises:
        Refused: it is none that a host could follow.
    """
    if verb not in VERBS:
        raise Refused(f"{verb} is not a request: choose from {', '.join(VERBS)}")
    if len(text) > LONGEST:
        raise Refused(f"the text is longer than {LONGEST} characters")
    if verb == "nudge" and not text.strip():
        raise Refused("nudge needs a text")
    if verb != "nudge" and text.strip():
        raise Refused(f"{verb} takes no text")
    if not 0 < seconds <= LONGEST_LIFE:
        raise Refused("a request is of use for one day at most")
    return Asked(_new_id(), host, verb, participant, text.strip(), by, seconds=seconds)


def about(host: str, verb: str, what: str, given: Mapping[str, Any], by: str) -> Asked:
    """A new request that is more than a word: an act of a person, or the answer to an agent.

    Args:
        host: who is asked.
        verb: `DECIDE`, one of `PERMITS`, or stop.
        what: the act; of `PERMITS` the participant.
        given: what it is about, whatever JSON can hold.
        by: who says that they ask.

    Raises:
        Refused: it is longer than a request may be.
    """
    text = json.dumps(given, separators=(",", ":"), ensure_ascii=False)
    if len(text) > LONGEST:
        raise Refused(f"the request is longer than {LONGEST} characters: write less")
    return Asked(_new_id(), host, verb, what, text, by)


def _new_id() -> str:
    return f"{time.time_ns() // 1_000_000:012x}"[-12:] + os.urandom(6).hex()


def _dated(seconds: float) -> str:
    """The last name that a request can have which is made at a time, in seconds since 1970."""
    return f"{int(seconds * 1_000):012x}"[-12:] + "f" * 12


def send(engine: Engine, request: Asked) -> None:
    """Ask, again where it is not known whether the first attempt arrived: it is one request.

    Raises:
        SharingError: the store does not have it, or that is not known.
    """
    try:
        engine.ask(request)
    except InDoubt:
        engine.ask(request)


def who(request: Asked) -> str:
    """Who asks, as far as that is proven."""
    if request.proven:
        return request.proven
    return f"an account that says that it is {request.by}" if request.by else "an unnamed account"


class Ledger:
    """What this account took up for a host: each request once, whatever happens meanwhile.

    It lies in the account's state folder: no agent, and no other host, can write there what was done.

    Args:
        address: of the collaboration.
        host: the host that is asked: this one.
    """

    def __init__(self, address: Address, host: str) -> None:
        name = hashlib.sha256(f"{address.text}\0{host}".encode()).hexdigest()[:32]
        self._path = state_folder() / "asked" / f"{name}.json"
        self._turn: int | None = None

    def hold(self) -> bool:
        """Be the process that does what is asked for, from now until `close`; False where another is.

        A host may have the collaboration in two folders, each with a process.
        """
        if self._turn is not None:
            return True
        if not _SUPPORTED:
            return False
        atomic.private_folder(self._path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(self._path.with_suffix(".turn"), flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._turn = fd
        return True

    def close(self) -> None:
        """Let another process do what is asked for."""
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def looked(self, now: float) -> float:
        """Note a look at the requests; how many seconds the last one was ago, infinite for none.

        Args:
            now: seconds since 1970, by this host's clock.
        """
        with self._held() as value:
            before = value.get("looked")
            value["looked"] = now
        if isinstance(before, bool) or not isinstance(before, int | float):
            return float("inf")
        return abs(now - before)  # a clock that was put back tells nothing of how long it was

    def take(self, id: str, now: float | None = None) -> bool:
        """Take a request up; False where this account has done so before, or cannot yet.

        Names grow with time: one that is not above those that were forgotten was there before. So a
        request that somebody puts back into the store long afterwards, signed as it is, does nothing.
        The date in a name is a stranger's: names ahead of this host's clock are never forgotten, or
        requests of true clocks would count as forgotten with them. Where there are many such names,
        another one waits until its time has come.

        Args:
            id: the request's name.
            now: seconds since 1970, by this host's clock.
        """
        present = _dated(time.time() if now is None else now)
        with self._held() as value:
            taken = _taken(value)
            if id in taken or id <= str(value.get("forgotten", "")):
                return False
            if id > present and sum(each > present for each in taken) >= _MOST:
                return False
            taken[id] = ["", ""]
            for each in sorted(each for each in taken if each <= present)[:-_MOST]:
                del taken[each]
                value["forgotten"] = each
            value["taken"] = taken
            return True

    def ended(self, id: str, state: str, sentence: str) -> None:
        """Note how a request that was taken up ended, before the store is told."""
        with self._held() as value:
            taken = _taken(value)
            taken[id] = [state, sentence]
            value["taken"] = taken

    def end_of(self, id: str) -> tuple[str, str] | None:
        """How a request ended that was taken up; None where it was not."""
        with self._held() as value:
            found = _taken(value).get(id)
        if found is None:
            return None
        state, sentence = found
        return (state, sentence) if state else (UNKNOWN, "acp was interrupted while it did this")

    @contextlib.contextmanager
    def _held(self) -> Iterator[dict[str, Any]]:
        """What is noted, to be changed: no other process of this account does so meanwhile.

        Raises:
            Refused: another process holds it for long.
            OSError: it cannot be written.
        """
        atomic.private_folder(self._path.parent)
        lock = self._path.with_suffix(".lock")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            with locked(str(lock), timeout=_PATIENCE):
                value = self._read()
                before = json.dumps(value)
                yield value
                if (now := json.dumps(value)) != before:
                    atomic.replace(self._path, now.encode(), private=True)
        except LogError as error:
            raise Refused(str(error)) from None

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(read_bounded(self._path, _LIMIT))
        except Unreadable as error:
            if error.missing:
                return {}
            raise Refused(f"{self._path}: {error}") from None
        except (ValueError, RecursionError):
            return {}  # as if nobody had looked: then whatever is found has expired
        return value if isinstance(value, dict) else {}


def _taken(value: dict[str, Any]) -> dict[str, list[str]]:
    taken = value.get("taken")
    if not isinstance(taken, dict):
        return {}
    return {
        str(id): [str(part) for part in each]
        for id, each in taken.items()
        if isinstance(each, list) and len(each) == 2
    }


NAMESPACE = "acp-request"
"""What a signature is for: one that was made for anything else is none for a request."""

LONGEST_PROOF = 8_000  # characters of a signature

_PROOF_PATIENCE = 30.0

_NAME = re.compile(r"[A-Za-z0-9._-][A-Za-z0-9._@-]{0,99}")

_KIND = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]{1,60}")

_KEY = re.compile(r"[A-Za-z0-9+/]{16,4000}={0,3}")


class Listed(NamedTuple):
    """Somebody whose decisions count on this host: a database account, or a name with an ssh key."""

    name: str
    key: str = ""


def listed() -> tuple[Listed, ...]:
    """Whom the owner of this host lets decide from other hosts; nobody by default.

    Raises:
        Refused: an entry of the settings cannot be read.
    """
    found = []
    for text in _set().get("deciders", ()):
        words = str(text).split()
        if len(words) == 1 and _NAME.fullmatch(words[0]):
            found.append(Listed(words[0]))
        elif len(words) >= 3 and all(
            form.fullmatch(word) for form, word in zip((_NAME, _KIND, _KEY), words, strict=False)
        ):
            found.append(Listed(words[0], f"{words[1]} {words[2]}"))
        else:
            raise Refused(
                f"[share] deciders: {clean_line(str(text), 80)} is neither an account of the database nor a name "
                "with an ssh public key"
            )
    return tuple(found)


def proven(request: Asked, address: Address) -> str:
    """The name by which this host's owner lists who asks; "" where it is not proven, or not listed.

    Raises:
        Refused: the settings, or ssh-keygen, cannot be used.
    """
    known = listed()
    if address.engine == POSTGRES:
        return next((e.name for e in known if not e.key and e.name == request.proven), "")
    keys = [each for each in known if each.key]
    if not keys or not request.signature or len(request.signature) > LONGEST_PROOF:
        return ""
    with tempfile.TemporaryDirectory(prefix="acp-proof-") as place:
        signature = Path(place, "signature")
        signature.write_text(request.signature, encoding="utf-8", errors="replace")
        for number, each in enumerate(keys):
            # One key a file: whose it is follows from the list alone, not from what is signed.
            allowed = Path(place, f"allowed-{number}")
            line = f'{each.name} namespaces="{NAMESPACE}" {each.key}\n'
            allowed.write_text(line, encoding="utf-8")
            words = [
                "verify",
                "-f",
                str(allowed),
                "-I",
                each.name,
                "-n",
                NAMESPACE,
                "-s",
                str(signature),
            ]
            if _run(words, words_of(request, address)).returncode == 0:
                return each.name
    return ""


def signed(request: Asked, address: Address) -> Asked:
    """The request with the signature of this account's key; as it is where the store itself proves who asks.

    Raises:
        Refused: no key is named in the settings, or it cannot be used without asking.
    """
    if address.engine == POSTGRES:
        return request
    key = str(_set().get("sign", ""))
    if not key:
        raise Refused(
            f"{request.host} follows only signed requests of this kind: name your ssh key in config.toml, as "
            'sign = "~/.ssh/id_ed25519" below [share]'
        )
    done = _run(
        ["sign", "-q", "-f", os.path.expanduser(key), "-n", NAMESPACE], words_of(request, address)
    )
    if done.returncode:
        why = clean_line(done.stderr.decode("utf-8", "replace"), 300) or "no reason given"
        raise Refused(f"the request cannot be signed with {clean_line(key, 200)}: {why}")
    return request._replace(signature=done.stdout.decode("ascii", "replace"))


def words_of(request: Asked, address: Address) -> bytes:
    """What is signed: the request, to which host, about which collaboration."""
    told = [NAMESPACE, 1, address.id, request.host, request.id, request.verb, request.participant,
            request.text, request.by, request.seconds]  # fmt: skip
    return json.dumps(told).encode()


def _run(words: Sequence[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run ssh-keygen, which asks nobody: a key that needs a passphrase must be in the agent.

    Raises:
        Refused: it is not installed, or does not end.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SSH_ASKPASS", "DISPLAY"))}
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *words], input=given, capture_output=True, timeout=_PROOF_PATIENCE, check=False,
            env=env | {"SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(
            f"ssh-keygen cannot be used ({error}): it is needed to prove who asks"
        ) from None


def _set() -> Mapping[str, Any]:
    try:
        return settings.load().share
    except settings.SettingsError as error:
        raise Refused(str(error)) from None
