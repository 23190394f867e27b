"""What hosts say of themselves and ask of each other, in a git remote: chains of small commits.

``refs/heads/acp/ID/host/HOST`` holds a host's ``state.json``, ``refs/heads/acp/ID/ask/HOST`` what
it is asked for, a file for each request. Who can push can write anything there: it is a claim of
whoever pushed. Standard library only.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from acp_core.stores import git_command
from acp_core.stores.address import Address
from acp_core.stores.engine import (
    Asked,
    Heard,
    HostState,
    StoreRefused,
    StoreUnreachable,
    TipMoved,
)
from acp_core.stores.git_objects import ObjectStore

_LONGEST_TEXT = 2_000
_LONGEST_SIGNATURE = 8_000
_LARGEST = 64 << 10  # bytes of a state or a request
_MOST = 100  # requests that are kept
_ANSWERED = 20  # of those that have an answer
_MOST_HOSTS = 200
_TRIES = 10


class Chains:
    """The host refs and request refs of one collaboration."""

    def __init__(self, objects: ObjectStore, address: Address) -> None:
        self._objects = objects
        self._remote = f"refs/heads/acp/{address.id}"
        self._local = f"refs/acp/{address.id}"

    def hosts(self) -> Sequence[Heard]:
        """See `Engine.hosts`."""
        with self._objects.held():
            found = []
            for name in self._all("host"):
                state = _state(self._files(f"{self._local}/host/{name}").get("state.json", b""))
                if state is not None and state.host == name:
                    found.append(Heard(state, None))
        return found

    def tell(self, state: HostState) -> None:
        """See `Engine.tell`."""
        data = json.dumps(state._asdict(), sort_keys=True).encode()
        self._add(f"host/{state.host}", {"state.json": data}, f"{state.host}: state")

    def ask(self, request: Asked) -> None:
        """See `Engine.ask`."""
        data = json.dumps(request._asdict(), sort_keys=True).encode()
        name, files = f"ask/{request.host}", {f"{request.id}.json": data}
        self._add(name, files, f"asks to {request.verb}", self._obsolete)

    def requests(self, host: str = "") -> Sequence[Asked]:
        """See `Engine.requests`."""
        with self._objects.held():
            hosts = [host] if host else self._all("ask")
            if host and not self._fetch(f"ask/{host}"):
                return []
            found = [each for name in hosts for each in self._asked(name)]
        return sorted(found, key=lambda each: each.id)[-_MOST:]

    def _all(self, kind: str) -> list[str]:
        """The hosts that have a chain of a kind, fetched."""
        if not self._objects.fetch(f"+{self._remote}/{kind}/*:{self._local}/{kind}/*", depth=1):
            return []
        shown = ["--format=%(refname)", f"--count={_MOST_HOSTS}", f"{self._local}/{kind}/"]
        listed = self._objects.local(["for-each-ref", *shown]) or b""
        return [each.rpartition("/")[2] for each in listed.decode().split()]

    def _asked(self, host: str) -> list[Asked]:
        """What a host was asked for, as was fetched last."""
        files = self._files(f"{self._local}/ask/{host}")
        found = []
        for name, data in files.items():
            id, _, kind = name.partition(".")
            if kind != "json":
                continue
            request = _request(data)
            if request is None or request.id != id or request.host != host:
                continue
            said = _decoded(files.get(f"{id}.answer", b""))
            if isinstance(said.get("state"), str) and isinstance(said.get("sentence"), str):
                request = request._replace(
                    state=said["state"][:40], sentence=said["sentence"][:_LONGEST_TEXT]
                )
            found.append(request)
        return found

    def answer(self, request: Asked, state: str, sentence: str) -> None:
        """See `Engine.answer`."""
        data = json.dumps({"state": state, "sentence": sentence}).encode()
        name, files = f"ask/{request.host}", {f"{request.id}.answer": data}
        self._add(name, files, f"{state}: {request.verb}", self._obsolete)

    def _obsolete(self, commit: str) -> list[str]:
        """The files of a request branch that nobody needs any more.

        The latest answers stay, for those who asked; so do requests that wait for one.
        """
        listed = self._objects.local(["ls-tree", "-z", "--name-only", "--full-tree", commit]) or b""
        names = sorted(each.decode("utf-8", "replace") for each in listed.split(b"\0") if each)
        ids = {name.partition(".")[0] for name in names}
        done = {name.partition(".")[0] for name in names if name.endswith(".answer")}
        kept = {*sorted(ids - done)[-_MOST:], *sorted(done)[-_ANSWERED:]}
        return [name for name in names if name.partition(".")[0] not in kept]

    def _fetch(self, name: str) -> str:
        """The commit of a chain; "" where there is none."""
        try:
            self._objects.fetch(f"+{self._remote}/{name}:{self._local}/{name}", depth=1)
        except StoreUnreachable as error:
            if git_command.NO_SUCH_REF in str(error):
                return ""
            raise
        return self._objects.ref(f"{self._local}/{name}")

    def _files(self, commit: str) -> dict[str, bytes]:
        """The files of a chain's last commit that are not too large, in the order of their names."""
        out = self._objects.local(["ls-tree", "-z", "-l", "--full-tree", commit]) or b""
        wanted: dict[str, str] = {}
        for entry in out.split(b"\0"):
            head, _, raw = entry.partition(b"\t")
            parts = head.split()
            if len(parts) == 4 and parts[1] == b"blob" and int(parts[3]) <= _LARGEST:
                wanted[raw.decode("utf-8", "replace")] = parts[2].decode()
        names = sorted(wanted)[-4 * _MOST :]  # names grow with time
        if not names:
            return {}
        given = "".join(f"{wanted[name]}\n" for name in names).encode()
        data = self._objects.local(["cat-file", "--batch", "--buffer"], given) or b""
        found, at = {}, 0
        for name in names:
            end = data.find(b"\n", at)
            parts = data[at:end].split()
            if end < 0 or len(parts) != 3:
                break
            size = int(parts[2])
            found[name] = data[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def _add(
        self,
        name: str,
        files: Mapping[str, bytes],
        message: str,
        obsolete: Callable[[str], Sequence[str]] = lambda commit: (),
    ) -> None:
        """Add a commit to a chain; others may add theirs at the same time.

        Args:
            name: of the chain.
            files: what is written.
            message: of the commit.
            obsolete: tells what of the chain's last commit is removed.
        """
        with self._objects.held():
            for _ in range(_TRIES):
                before = self._fetch(name)
                gone = [each for each in obsolete(before) if each not in files] if before else []
                made = self._made(name, before, {**files, **dict.fromkeys(gone)}, message)
                try:
                    self._objects.push(made, f"{self._remote}/{name}", before)
                    return
                except TipMoved as error:
                    moved = error
                    time.sleep(random.uniform(0.02, 0.1))
        raise moved

    def _made(self, name: str, before: str, files: Mapping[str, bytes | None], message: str) -> str:
        now, text = int(time.time()), f"{message}\n\nchange {os.urandom(8).hex()}\n".encode()
        parts = [
            f"commit {self._local}/said\nmark :1\ncommitter acp <acp@acp> {now} +0000\n".encode()
        ]
        parts.append(b"data %d\n%s\n" % (len(text), text))
        if before:
            parts.append(f"from {before}\n".encode())
        for path, data in files.items():
            if data is None:
                parts.append(f"D {git_command.quoted(path)}\n".encode())
                continue
            parts.append(f"M 100644 inline {git_command.quoted(path)}\n".encode())
            parts.append(b"data %d\n%s\n" % (len(data), data))
        parts.append(b"\nget-mark :1\ndone\n")
        arguments = ["fast-import", "--quiet", "--force", "--done", "--date-format=raw"]
        out = self._objects.local(arguments, b"".join(parts))
        if not out:
            raise StoreRefused("git could not write into its cache (is the disk full?)")
        return out.decode().strip()


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _state(data: bytes) -> HostState | None:
    """What a host says, if it can be read."""
    value = _decoded(data)
    texts = [
        value.get(name, "") for name in ("host", "account", "boot", "version", "at", "continued")
    ]
    people = value.get("participants", {})
    if not all(isinstance(each, str) and len(each) <= _LONGEST_TEXT for each in texts):
        return None
    if not isinstance(people, dict) or not all(isinstance(each, dict) for each in people.values()):
        return None
    host, account, boot, version, at, continued = texts
    return HostState(host, account, boot, version, people, at, continued)


def _request(data: bytes) -> Asked | None:
    """A request that a stranger may have written; nothing of it is proven."""
    value = _decoded(data)
    names = ("id", "host", "verb", "participant", "text", "by")
    texts = [value.get(name, "") for name in names]
    seconds = value.get("seconds", 600.0)
    if not all(isinstance(each, str) and len(each) <= _LONGEST_TEXT for each in texts):
        return None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 <= seconds <= 86_400
    ):
        return None
    id, host, verb, participant, text, by = texts
    signature = value.get("signature", "")
    if not isinstance(signature, str) or len(signature) > _LONGEST_SIGNATURE:
        return None
    made = Asked(id, host, verb, participant, text, by, "", float(seconds))
    return made._replace(signature=signature)
