"""A store that is a git remote: any forge, a machine that is reached by ssh, or a path.

The log of a collaboration is the branch ``refs/heads/acp/ID/log``: its tree is the folder itself,
byte for byte, with the leases in ``.acp/leases``; one change is one commit, and the push of it,
onto exactly the commit that it was made for, is the moment at which it is done.
``refs/heads/acp/ID/host/HOST`` holds a host's ``state.json``, ``refs/heads/acp/ID/ask/HOST`` what
it is asked for, a file for each request, as chains of small commits. Who can push can write
anything there: it is a claim of whoever pushed. No work tree, no index: git's plumbing alone.

The list of all collaborations of a repository comes into a corner of the object store that no
folder's engine uses, and what is gone there goes here, too. Nothing is written into a folder, and no
document is read. Each push lists all branches of a repository, so that too many make all of them
slow. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from acp_core.model.text import clean_line
from acp_core.stores import git_objects
from acp_core.stores.address import GIT, Address, BadAddress, checked_id
from acp_core.stores.engine import (
    MAX_BYTES,
    MAX_FILE,
    MAX_FILES,
    Acting,
    Asked,
    Change,
    Commit,
    Engine,
    Heard,
    HostState,
    Lease,
    Listed,
    NotInStore,
    SharingError,
    Standing,
    StoreRefused,
    StoreUnreachable,
    Tip,
    TipMoved,
    Tips,
    decode_lease,
    encode_lease,
    fault_point,
    lease_file,
    put_back,
    rewritten,
)
from acp_core.stores.git_objects import ObjectStore

LOG, PROTOCOL = "events.jsonl", "protocol.json"

LEASES = ".acp/leases/"

_LOOK, _SLOW_LOOK = 1.0, 5.0  # seconds between two looks; over ssh that is not kept open


class GitEngine(Engine):
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
                if now - started < 0.1 or not git_objects.is_ssh(self.address.url)
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
        if git_objects.NO_SUCH_REF in str(error):
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
            if git_objects.NO_SUCH_REF in str(error):
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
                parts.append(f"D {git_objects.quoted(path)}\n".encode())
                continue
            parts.append(f"M 100644 inline {git_objects.quoted(path)}\n".encode())
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


LOOK, SLOW_LOOK = 1.0, 5.0  # seconds between two looks; over ssh that is not kept open

MOST = 5_000  # collaborations that are listed

_LARGEST_LOG = 64 << 20

_LARGEST_PROTOCOL = 4 << 20  # bytes of protocol.json

_SMALL = 64 << 10  # of a lease

_MOST_LEASES = 64

_REMOTE, _LOCAL = "refs/heads/acp", "refs/listed"

_REF = re.compile(rf"{_LOCAL}/(?P<id>[^ ]+)/log (?P<commit>[0-9a-f]{{40}}(?:[0-9a-f]{{24}})?)")


class GitListing:
    """The collaborations of one repository; see `acp_core.stores.engine.Listing`.

    Args:
        address: of the repository.
        standing: reads a collaboration.
    """

    def __init__(self, address: Address, standing: Standing) -> None:
        self.listed: dict[str, Listed] = {}
        self.note = ""
        self._url = address.url
        self._objects = ObjectStore(address.url)
        self._standing = standing
        self._took = 0.0  # seconds, the last look

    def refresh(self) -> frozenset[str]:
        """See `Listing.refresh`."""
        began = time.monotonic()
        with self._objects.held():
            first = not self._refs()
            self._objects.fetch(
                f"+{_REMOTE}/*/log:{_LOCAL}/*/log", depth=1 if first else None, prune=True
            )
            self._took = time.monotonic() - began
            refs = self._refs()
            known = {id: each for id, each in self.listed.items() if refs.get(id) == each.revision}
            changed = {id: commit for id, commit in refs.items() if id not in known}
            gone = self.listed.keys() - refs.keys()
            read = self._read(changed) if changed else {}
        self.listed = {id: known.get(id) or read[id] for id in refs}
        return frozenset({*changed, *gone})

    def wait(self, seconds: float) -> bool:
        """See `Listing.wait`: nobody tells, so it is always only time to look."""
        slow = self._took >= 0.1 and git_objects.is_ssh(self._url)
        time.sleep(min(seconds, SLOW_LOOK if slow else LOOK))
        return False

    def close(self) -> None:
        """Nothing runs for it between its calls."""

    def _refs(self) -> dict[str, str]:
        """The commit of each log, by id; names that are no ids are left out and counted."""
        out = self._objects.local(["for-each-ref", "--format=%(refname) %(objectname)", _LOCAL])
        found: dict[str, str] = {}
        refused = 0
        for line in (out or b"").decode("utf-8", "replace").splitlines():
            parts = _REF.fullmatch(line)
            try:
                id = checked_id(parts["id"] if parts else "")
            except BadAddress:
                refused += 1
                continue
            assert parts is not None
            found[id] = parts["commit"]
        cut = len(found) > MOST
        self.note = "; ".join(
            [*([f"{refused} branches below {_REMOTE}/ have names that acp does not use"] if refused else []),
             *([f"only {MOST} collaborations are listed"] if cut else [])]
        )  # fmt: skip
        return dict(sorted(found.items())[:MOST]) if cut else found

    def _read(self, commits: Mapping[str, str]) -> dict[str, Listed]:
        """What their commits hold beside documents."""
        wanted = [f"{commit}:{name}" for commit in commits.values()
                  for name in ("events.jsonl", "protocol.json", ".acp/leases")]  # fmt: skip
        kinds = self._sizes(wanted)
        small = [
            each
            for each, (kind, size) in zip(wanted, kinds, strict=True)
            if (kind == b"tree" and size <= _LARGEST_PROTOCOL)
            or (
                kind == b"blob"
                and size <= (_LARGEST_LOG if each.endswith("l") else _LARGEST_PROTOCOL)
            )
        ]
        contents = self._contents(small)
        leases = self._leases(commits, contents)
        read: dict[str, Listed] = {}
        for id, commit in commits.items():
            log = contents.get(f"{commit}:events.jsonl")
            protocol = contents.get(f"{commit}:protocol.json")
            told: Mapping[str, Any] = {}
            if log is not None and protocol is not None:
                told = self._standing(protocol, log)
            read[id] = _listed(id, commit, log or b"", told, leases.get(id, ()))
        return read

    def _leases(
        self, commits: Mapping[str, str], contents: Mapping[str, bytes]
    ) -> dict[str, tuple[Acting, ...]]:
        """Who acts where, by id."""
        files = {
            id: [blob for name, blob in _entries(contents.get(f"{commit}:.acp/leases", b""), len(commit) // 2)
                 if name.endswith(b".json")][:_MOST_LEASES]
            for id, commit in commits.items()
        }  # fmt: skip
        blobs = sorted({blob for each in files.values() for blob in each})
        small = [b for b, (kind, size) in zip(blobs, self._sizes(blobs), strict=True)
                 if kind == b"blob" and size <= _SMALL]  # fmt: skip
        data = self._contents(small)
        found = {}
        for id, listed in files.items():
            leases = [decode_lease(data[blob]) for blob in listed if blob in data]
            found[id] = tuple(Acting(e.participant, e.host, e.account) for e in leases if e)
        return found

    def _sizes(self, names: Sequence[str]) -> list[tuple[bytes, int]]:
        """Kind and size of objects; (b"", 0) for one that is missing."""
        if not names:
            return []
        out = self._asked("--batch-check=%(objecttype) %(objectsize)", names)
        found = []
        for line in out.splitlines():
            kind, _, size = line.rpartition(b" ")
            found.append((kind, int(size)) if kind in (b"blob", b"tree") else (b"", 0))
        if len(found) != len(names):
            raise StoreRefused("the objects of the store cannot be read")
        return found

    def _contents(self, names: Sequence[str]) -> dict[str, bytes]:
        """The contents of objects that are there."""
        out = self._asked("--batch", names) if names else b""
        contents: dict[str, bytes] = {}
        at = 0
        for name in names:
            end = out.index(b"\n", at)
            size = int(out[at:end].split()[2])
            contents[name] = out[end + 1 : end + 1 + size]
            at = end + size + 2
        return contents

    def _asked(self, option: str, names: Sequence[str]) -> bytes:
        given = "".join(f"{name}\n" for name in names).encode()
        out = self._objects.local(["cat-file", option, "--buffer"], given)
        if out is None:
            raise StoreRefused("the objects of the store cannot be read")
        return out


def _listed(
    id: str, commit: str, log: bytes, told: Mapping[str, Any], acting: tuple[Acting, ...]
) -> Listed:
    people = told.get("people", ())
    waiting = tuple(each[0] for each in people if len(each) > 2)
    last = log[log[:-1].rfind(b"\n") + 1 :]
    try:
        value: Any = json.loads(last)
        seq = value["seq"] if type(value["seq"]) is int else 0
    except (ValueError, TypeError, KeyError, RecursionError):
        seq = 0
    phase = str(told.get("phase", ""))
    return Listed(id, commit, seq, phase, waiting, None, b"", (), told, acting)


def _entries(tree: bytes, digest: int) -> Iterator[tuple[bytes, str]]:
    """The names in a tree object, each with the object that it stands for."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        name = tree[at:end].partition(b" ")[2]
        yield name, tree[end + 1 : end + 1 + digest].hex()
        at = end + 1 + digest


MOST_BRANCHES = 500


def advice_on_branches(address: Address) -> str:
    """What is said of a store that holds too many; "" of any other, and where it cannot be seen."""
    if address.engine != GIT:
        return ""
    objects = ObjectStore(address.url)
    try:
        with objects.held():
            count = len(objects.remote_refs("refs/heads/acp/*/log"))
    except SharingError:
        return ""
    if count <= MOST_BRANCHES:
        return ""
    return (
        f"The repository holds {count} collaborations, and each push lists them all: use one repository for each "
        "project."
    )


NEWS_LOOK, SLOW_NEWS_LOOK = 1.0, 5.0  # seconds between two looks; over ssh that is not kept open

QUIET_NEWS_LOOK, NEWS_QUIET = 1.5, 60.0  # the same where nothing has come for so many seconds

_NEWS_REFS = "refs/heads/acp/"


class GitNews:
    """A look at the branches of acp in a repository, in one call, which fetches nothing.

    One look is one run of git, whatever the number of collaborations; a fetch of as many refs takes
    twice the processor time, and holds up who publishes from this machine.

    Args:
        address: of the repository.
        host: this host: what it is asked for is news, too.
    """

    def __init__(self, address: Address, host: str) -> None:
        self._url = address.url
        self._objects = ObjectStore(address.url)
        self._request = f"/ask/{host}"
        self._next = 0.0
        self._changed = time.monotonic()
        self._refs: dict[str, str] = {}  # where each branch stood

    def wait(self, tips: Tips, seconds: float) -> frozenset[str]:
        """See `StoreNews.wait`."""
        now = time.monotonic()
        if self._next > now + seconds:
            time.sleep(seconds)
            return frozenset()
        time.sleep(max(0.0, self._next - now))
        began = time.monotonic()
        self._next = began + SLOW_NEWS_LOOK  # where it fails
        refs = self._objects.remote_refs(f"{_NEWS_REFS}*")
        before, self._refs = self._refs, refs
        if refs != before:
            self._changed = began
        if git_objects.is_ssh(self._url) and time.monotonic() - began >= 0.1:
            pause = SLOW_NEWS_LOOK
        else:
            pause = NEWS_LOOK if began - self._changed < NEWS_QUIET else QUIET_NEWS_LOOK
        self._next = began + pause
        return frozenset(
            id
            for id, tip in tips().items()
            if refs.get(f"{_NEWS_REFS}{id}/log") != tip
            or before.get(asked := f"{_NEWS_REFS}{id}{self._request}") != refs.get(asked)
        )

    def beat(self, host: str, ids: frozenset[str]) -> None:
        """See `StoreNews.beat`: a repository keeps no time."""

    def close(self) -> None:
        """See `StoreNews.close`."""
