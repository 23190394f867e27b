"""All collaborations of a git repository: their logs, news of them, and whether there are too many.

The refs come into a corner of the object store that no folder's engine uses, and those that are
gone there go here, too. Nothing is written into a folder, and no document is read. Each push lists
all branches of a repository, so that too many make all of them slow.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acp_core.stores import git_command
from acp_core.stores.address import GIT, Address, BadAddress, checked_id
from acp_core.stores.engine import (
    Acting,
    Listed,
    SharingError,
    Standing,
    StoreRefused,
    Tips,
    decode_lease,
)
from acp_core.stores.git_objects import ObjectStore

LOOK, SLOW_LOOK = 1.0, 5.0  # seconds between two looks; over ssh that is not kept open

MOST = 5_000  # collaborations that are listed

_LARGEST_LOG = 64 << 20

_LARGEST = 4 << 20  # bytes of protocol.json

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
        slow = self._took >= 0.1 and git_command.is_ssh(self._url)
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
            if (kind == b"tree" and size <= _LARGEST)
            or (kind == b"blob" and size <= (_LARGEST_LOG if each.endswith("l") else _LARGEST))
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
        if git_command.is_ssh(self._url) and time.monotonic() - began >= 0.1:
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
