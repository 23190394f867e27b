"""A store that is a git remote: any forge, a machine that is reached by ssh, or a path.

The log of a collaboration is the branch ``refs/heads/acp/ID/log``: its tree is the folder itself,
byte for byte, with the leases in ``.acp/leases``; one change is one commit, and the push of it,
onto exactly the commit that it was made for, is the moment at which it is done. What hosts say is
in `git_hosts`. No work tree, no index: git's plumbing alone. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from acp_core.model.text import clean_line
from acp_core.stores import git_command, git_objects
from acp_core.stores.address import Address
from acp_core.stores.engine import (
    MAX_BYTES,
    MAX_FILE,
    MAX_FILES,
    Asked,
    Change,
    Commit,
    Heard,
    HostState,
    Lease,
    NotInStore,
    StoreRefused,
    StoreUnreachable,
    Tip,
    TipMoved,
    decode_lease,
    encode_lease,
    lease_file,
    put_back,
    rewritten,
)
from acp_core.stores.fault_points import fault_point
from acp_core.stores.git_hosts import Chains
from acp_core.stores.git_objects import ObjectStore

LOG, PROTOCOL = "events.jsonl", "protocol.json"
LEASES = ".acp/leases/"
_LOOK, _SLOW_LOOK = 1.0, 5.0  # seconds between two looks; over ssh that is not kept open


class GitEngine:
    """A collaboration in a git repository; see `acp_core.stores.engine.Engine`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._objects = ObjectStore(address.url)
        self._remote = f"refs/heads/acp/{address.id}/log"
        self._local = f"refs/acp/{address.id}/log"
        self._next = f"refs/acp/{address.id}/next"
        self._chains = Chains(self._objects, address)
        self._last: Commit | None = None  # what was read last, without its documents

    def read(self, since: Tip | None) -> Commit:
        """See `Engine.read`."""
        with self._objects.held():
            commit = self._fetch(since is None)
            if since is not None and commit == since.id:
                return self._unchanged(since)
            return self._commit(commit, since)

    def earlier(self, tip: Tip, path: str) -> bytes | None:
        """See `Engine.earlier`."""
        if not _is_commit(tip.id):
            return None
        with self._objects.held():
            return self._objects.local(["cat-file", "blob", f"{tip.id}:{path}"])

    def publish(self, expected: Tip | None, change: Change) -> Tip:
        """See `Engine.publish`."""
        with self._objects.held():
            if expected is not None and not _is_commit(expected.id):
                raise TipMoved("the folder's manifest names no commit")
            if expected is not None and not self._has(expected.id):
                self._fetch(fresh=True)  # the cache was thrown away, or is another account's
                if not self._objects.has(expected.id):
                    raise TipMoved("the store has moved on")
            commit = self._make(expected, change)
            fault_point("before publish")
            self._objects.push(commit, self._remote, expected.id if expected else "")
            fault_point("after publish")
        digest = hashlib.sha256(change.log).hexdigest()
        return Tip(commit, change.seq, len(change.log), digest)

    def wait(self, tip: Tip, seconds: float) -> bool:
        """See `Engine.wait`."""
        deadline = time.monotonic() + seconds
        while True:
            started = time.monotonic()
            with self._objects.held():
                if self._fetch(fresh=False) != tip.id:
                    return True
            now = time.monotonic()
            pause = (
                _LOOK
                if now - started < 0.1 or not git_command.is_ssh(self.address.url)
                else _SLOW_LOOK
            )
            if now + pause > deadline:
                time.sleep(max(0.0, deadline - now))
                return False
            time.sleep(pause)

    def hosts(self) -> Sequence[Heard]:
        """See `Engine.hosts`."""
        return self._chains.hosts()

    def tell(self, state: HostState) -> None:
        """See `Engine.tell`."""
        self._chains.tell(state)

    def ask(self, request: Asked) -> None:
        """See `Engine.ask`."""
        self._chains.ask(request)

    def requests(self, host: str = "") -> Sequence[Asked]:
        """See `Engine.requests`."""
        return self._chains.requests(host)

    def answer(self, request: Asked, state: str, sentence: str) -> None:
        """See `Engine.answer`."""
        self._chains.answer(request, state, sentence)

    def close(self) -> None:
        """Nothing runs for this engine between its calls."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fetch(self, fresh: bool) -> str:
        """The commit at which the collaboration stands, with its objects.

        Args:
            fresh: nothing of the history before it is needed.

        Raises:
            NotInStore: there is none.
        """
        first = fresh and not self._objects.ref(self._local)
        try:
            self._objects.fetch(f"+{self._remote}:{self._local}", depth=1 if first else None)
        except StoreUnreachable as error:
            raise self._missing(error) from None
        commit = self._objects.ref(self._local)
        if not commit:
            raise NotInStore(f"{self.address.text} is not in the store")
        return commit

    def _has(self, commit: str) -> bool:
        """Whether a commit is in our cache; where a ref of ours names it, git need not be asked."""
        ours = (self._local, self._next)
        return any(self._objects.ref(each) == commit for each in ours) or self._objects.has(commit)

    def _missing(self, error: StoreUnreachable) -> Exception:
        if git_command.NO_SUCH_REF in str(error):
            return NotInStore(
                f"{clean_line(self.address.text, 300)} is not in the store (`acp share` puts it there)"
            )
        return error

    def _commit(self, commit: str, since: Tip | None) -> Commit:
        """What a commit holds beyond an earlier one."""
        tree = self._tree(commit)
        git_objects.note(self._objects.folder, self.address.id, commit, tree)
        listed = {path: id for path, (_, id) in tree.items()}
        wanted, whole = self._changed(commit, since, listed)
        contents = self._blobs({each: listed[each] for each in wanted if each in listed})
        log = contents.get(LOG) or b""
        if since is not None:
            _must_continue(log, since)
        documents: dict[str, bytes | None] = {
            path: contents.get(path)
            for path in wanted
            if path not in (LOG, PROTOCOL) and not path.startswith(LEASES)
        }
        tip = Tip(commit, _last_seq(log), len(log), hashlib.sha256(log).hexdigest())
        added = log[since.size :] if since else log
        programs = sorted(p for p in wanted if p in tree and tree[p][0] == git_objects.PROGRAM)
        remarks = tuple(
            f"{clean_line(each, 200)} is executable in the store: it is not here"
            for each in programs
        )
        protocol = contents.get(PROTOCOL) or b""
        return Commit(tip, added, protocol, documents, _leases(contents), whole, remarks)

    def _changed(
        self, commit: str, since: Tip | None, listed: Mapping[str, str]
    ) -> tuple[set[str], bool]:
        """The paths to read: what changed, log, protocol.json and leases; whether that is all."""
        always = {path for path in listed if path in (LOG, PROTOCOL) or path.startswith(LEASES)}
        out = None
        if since is not None and _is_commit(since.id):
            out = self._objects.local(
                ["diff-tree", "-r", "-z", "--no-renames", "--name-only", since.id, commit]
            )
        if out is None:
            return set(listed), True
        return always | {_name(each) for each in out.split(b"\0") if each}, False

    def _tree(self, commit: str) -> git_objects.Listing:
        """The modes and blobs of a commit by path, once it is certain that they are not too many.

        Raises:
            StoreRefused: it holds what no folder should be made of.
        """
        out = self._objects.local(["ls-tree", "-r", "-z", "-l", "--full-tree", commit])
        if out is None:
            raise StoreRefused(f"{commit[:12]} of the store cannot be read")
        found: git_objects.Listing = {}
        total = 0
        for entry in out.split(b"\0"):
            if not entry:
                continue
            head, _, raw = entry.partition(b"\t")
            mode, kind, id, size = head.split()
            name = _name(raw)
            if kind != b"blob" or mode.decode() not in (git_objects.FILE, git_objects.PROGRAM):
                word = "a symbolic link" if mode == b"120000" else "another repository"
                raise StoreRefused(f"the store holds {clean_line(name, 200)}, {word}: refused")
            if int(size) > MAX_FILE:
                raise StoreRefused(
                    f"the store holds {clean_line(name, 200)}, larger than {MAX_FILE >> 20} MiB: refused"
                )
            total += int(size)
            found[name] = (mode.decode(), id.decode())
        if len(found) > MAX_FILES or total > MAX_BYTES:
            raise StoreRefused(
                f"the store holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB: refused"
            )
        return found

    def _blobs(self, wanted: Mapping[str, str]) -> dict[str, bytes]:
        """The contents of blobs, as they are: no filter, no conversion."""
        if not wanted:
            return {}
        given = "".join(f"{id}\n" for id in wanted.values()).encode()
        out = self._objects.local(["cat-file", "--batch", "--buffer"], given)
        if out is None:
            raise StoreRefused("the objects of the store cannot be read")
        contents: dict[str, bytes] = {}
        at = 0
        for path in wanted:
            end = out.index(b"\n", at)
            head = out[at:end].split()
            if len(head) != 3 or head[1] != b"blob":
                raise StoreRefused(f"the store lacks the content of {clean_line(path, 200)}")
            size = int(head[2])
            contents[path] = out[end + 1 : end + 1 + size]
            at = end + size + 2
        return contents

    def _unchanged(self, tip: Tip) -> Commit:
        """What stands at a tip beside log and documents: both are as they were."""
        if self._last is not None and self._last.tip == tip:
            return self._last
        wanted = {
            path: id
            for path, (_, id) in self._tree(tip.id).items()
            if path == PROTOCOL or path.startswith(LEASES)
        }
        contents = self._blobs(wanted)
        self._last = Commit(tip, b"", contents.get(PROTOCOL) or b"", {}, _leases(contents))
        return self._last

    def _make(self, expected: Tip | None, change: Change) -> str:
        """The commit of a change, in our own store."""
        files: dict[str, bytes | None] = {PROTOCOL: change.protocol, **change.documents}
        if change.line is not None or expected is None:
            files[LOG] = change.log
        for participant, lease in change.leases.items():
            files[_lease_path(participant)] = encode_lease(lease) if lease else None
        who = f"{_identity(change.account) or 'acp'} <{_identity(change.host) or 'host'}@acp>"
        message = (
            f"{change.words}\n\nchange {os.urandom(8).hex()}\n".encode()
        )  # no two are one commit
        store, parent = self._objects.folder, expected.id if expected else ""
        before = git_objects.noted(store, self.address.id, parent) if parent else {}
        if before is None:
            before = self._tree(parent)
        try:
            made, after = git_objects.commit(store, parent, before, files, who, message)
            git_objects.set_ref(store, self._next, made)
        except OSError as error:
            raise StoreRefused(
                f"the change cannot be written into the cache ({error.strerror})"
            ) from None
        git_objects.note(store, self.address.id, made, after)
        return made


def _must_continue(log: bytes, since: Tip) -> None:
    """Refuse a log that does not begin with what was seen of it.

    Raises:
        HistoryRewritten: it does not.
    """
    if hashlib.sha256(log[: since.size]).hexdigest() == since.sha256 and len(log) >= since.size:
        return
    seq = _last_seq(log)
    raise put_back(seq, since.seq) if seq < since.seq else rewritten(since.seq)


def _last_seq(log: bytes) -> int:
    last = log[:-1][log[:-1].rfind(b"\n") + 1 :]
    try:
        value: Any = json.loads(last)
        seq = value["seq"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return log.count(b"\n")
    return seq if isinstance(seq, int) and not isinstance(seq, bool) else log.count(b"\n")


def _leases(contents: Mapping[str, bytes]) -> dict[str, Lease]:
    """The leases among files, each where its participant's belongs."""
    found = {path: decode_lease(data) for path, data in contents.items() if path.startswith(LEASES)}
    return {
        lease.participant: lease
        for path, lease in found.items()
        if lease is not None and path == _lease_path(lease.participant)
    }


def _is_commit(id: str) -> bool:
    """Whether a tip's id can be given to git: the folder, which anybody may have written, says it."""
    return re.fullmatch(r"[0-9a-f]{40}([0-9a-f]{24})?", id) is not None


def _lease_path(participant: str) -> str:
    return f"{LEASES}{lease_file(participant)}"


def _name(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _identity(text: str) -> str:
    """A name as a commit may carry it."""
    return "".join(each for each in clean_line(text, 80) if each not in "<>\n\0").strip()
