"""Making a shared folder's files what its store holds, without losing what was changed here.

The log and protocol.json are the store's and never merged. A document that was changed on one side
only is taken from there; one that was changed on both stays as the store has it, and the local text
is kept beside it in ``.acp/kept`` (two reviews that were both only added are joined). Documents are
written first, then the log's lines, then protocol.json: whoever sees an event finds its document.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from acp_core.files.locked import LogError, locked
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.stores import tree as stores_tree
from acp_core.stores.base import Base, Entry, TipCache, digest, write_base, write_leases
from acp_core.stores.engine import (
    Commit,
    Engine,
    HistoryRewritten,
    NotInStore,
    SharingError,
    Tip,
    fault_point,
    rewritten,
)
from acp_core.stores.tree import Tree

LOG, PROTOCOL = "events.jsonl", "protocol.json"
JOINED = frozenset({"review.md"})
"""Documents to which several hosts only add sections."""
_MODE = 0o644
_SECTION = re.compile(rb"^(?=## )", re.MULTILINE)


class Done(NamedTuple):
    """What was written.

    Attributes:
        base: the manifest, now.
        commit: what was read.
        log: the whole log.
        written: the documents that came from the store, and those that it deleted.
        kept: local texts that gave way, by document: where they are now.
        rogue: lines of the local log that the store does not have; "" in ``kept_log`` where they
            still stand there, since the store has not moved: they can be published as they are.
        kept_log: where such lines were moved to.
        notes: sentences for people about all this.
    """

    base: Base
    commit: Commit
    log: bytes
    written: tuple[str, ...] = ()
    kept: Mapping[str, str] = {}
    rogue: bytes = b""
    kept_log: str = ""
    notes: tuple[str, ...] = ()


def bring(
    folder: str,
    engine: Engine,
    base: Base | None,
    host: str,
    allowed: Callable[[bytes, bytes], Callable[[str], bool]],
    *,
    strict: bool = False,
    known: TipCache | None = None,
) -> Done:
    """Read what has changed in the store, and write it here. The folder is held by the caller.

    Args:
        folder: the shared folder.
        engine: its store.
        base: what was read last; None for nothing.
        host: this host's name, for what is kept.
        allowed: of protocol.json and the log, which names of documents are shared.
        known: what is known of the collaboration: where it knows the manifest's tip, the store is not
            asked, so that whatever follows from this must be published under that tip.
        strict: put the log back to the store's even where nothing has happened there since.

    Raises:
        HistoryRewritten, StoreRefused, StoreUnreachable: nothing was written.
        OSError: a file could not be written; the next call goes on with it.
    """
    tree = Tree(folder)
    local = tree.read(LOG) or b""
    commit = known.at(base.tip) if known and base else None
    try:
        commit = commit or _read(engine, base)
    except HistoryRewritten as error:
        base, commit = None, _despite(engine, local, error)
    before = local[: base.tip.size] if base else b""
    if base and (len(before) < base.tip.size or digest(before) != base.tip.sha256):
        seen, base = base.tip, None  # the local log is not what was read: all is read anew
        commit = engine.read(None)
        if digest(commit.added[: seen.size]) != seen.sha256:
            commit = _despite(engine, local, rewritten(seen.seq))
        before = b""
    elif base and len(before + commit.added) < len(local) and _says_less(engine, commit.tip):
        base, commit, before = None, engine.read(None), b""
    log = before + commit.added
    may = allowed(commit.protocol, log)
    old = dict(base.files) if base else {}
    wanted = _wanted(commit, may, old)
    if commit.whole:
        wanted |= dict.fromkeys(old.keys() - wanted.keys() - {PROTOCOL})
    notes = [*commit.remarks, *_left_out(commit, may)]
    kept: dict[str, str] = {}
    written: list[str] = []
    files = dict(old)
    for path, remote in wanted.items():
        mine = tree.read(path)
        settled = _settle(path, old.get(path), mine, remote)
        if settled.kept is not None:
            kept[path] = tree.keep(path, settled.kept, host)
            _keep_before(tree, engine, base, path, kept[path])
            notes.append(
                f"{path} was changed here and in the store: the file has the store's text, yours is kept in {kept[path]} "
                f"(`acp sync --mine {path}`, `--theirs {path}` or `--merge {path}` resolves it)"
            )
        if settled.data != mine:
            fault_point("before document")
            if settled.data is None:
                tree.remove(path)
            else:
                tree.replace(path, settled.data)
            written.append(path)
        if remote is None:
            files.pop(path, None)
        else:
            files[path] = Entry(digest(remote), len(remote), _MODE)
    moved = strict or base is None or commit.tip != base.tip
    rogue, kept_log = _write_log(tree, local, log, host, moved=moved)
    if kept_log:
        notes.append(
            "events.jsonl had lines here that the store does not have, and that cannot keep their seq: they were moved "
            f"to {kept_log}; `acp sync --again` appends those that are still allowed"
        )
    if not rogue or kept_log:
        _write_protocol(tree, commit.protocol, old, kept, notes, host)
    write_leases(tree.folder, commit.leases)
    files[PROTOCOL] = Entry(digest(commit.protocol), len(commit.protocol), _MODE)
    now = Base(commit.tip, files)
    if now != base:
        fault_point("before base")
        write_base(folder, now)
        fault_point("after base")
    return Done(now, commit, log, tuple(written), kept, rogue, kept_log, tuple(notes))


def _despite(engine: Engine, local: bytes, error: HistoryRewritten) -> Commit:
    """All that the store holds, where it continues the local log: then the manifest is not as acp wrote it.

    Raises:
        HistoryRewritten: it does not.
    """
    try:
        found = engine.read(None)
    except NotInStore:
        raise error from None
    if not local or not found.added.startswith(local):
        raise error
    return found


def _says_less(engine: Engine, tip: Tip) -> bool:
    """Whether the manifest's tip names less of the log than the store has there: somebody wrote it.

    Lines that the store has had for long would be taken for new ones of this folder.
    """
    now = engine.read(None).tip
    return now.id == tip.id and now != tip


def _keep_before(tree: Tree, engine: Engine, base: Base | None, path: str, kept: str) -> None:
    """Keep the text that both sides have changed beside the one that gave way, for merging both."""
    if base is None or path not in base.files:
        return
    with contextlib.suppress(SharingError):  # then two texts are merged without it
        before = engine.earlier(base.tip, path)
        if before is not None and digest(before) == base.files[path].sha256:
            tree.replace(tree.before(kept), before)


def _read(engine: Engine, base: Base | None) -> Commit:
    """What the store holds beyond the manifest.

    Raises:
        HistoryRewritten, NotInStore, StoreRefused, StoreUnreachable: see `Engine.read`.
    """
    try:
        return engine.read(base.tip if base else None)
    except NotInStore:
        if base is None:
            raise
        raise HistoryRewritten(
            "the store no longer holds this collaboration: ask the others"
        ) from None


class _Settled(NamedTuple):
    """What a document becomes, and the local text that gives way to it."""

    data: bytes | None
    kept: bytes | None = None


def _settle(path: str, base: Entry | None, mine: bytes | None, remote: bytes | None) -> _Settled:
    """What a document becomes: rules R2, R4 and R5."""
    if mine == remote:
        return _Settled(mine)
    mine_is_base = (
        mine is None if base is None else mine is not None and digest(mine) == base.sha256
    )
    if mine_is_base:
        return _Settled(remote)
    if base is not None and remote is not None and digest(remote) == base.sha256:
        return _Settled(mine)  # changed here, and not yet published
    if base is not None and mine is None:
        return _Settled(remote)  # deleted here: deletions are published only when asked for
    if path in JOINED and base is not None and mine is not None and remote is not None:
        joined = _joined(base, mine, remote)
        if joined is not None:
            return _Settled(joined)
    return _Settled(remote, mine)


def _joined(base: Entry, mine: bytes, remote: bytes) -> bytes | None:
    """Both additions to one text, the store's first; None where somebody did more than add.

    A section that both have is one: it came from the store, and a kill kept that from being noted.
    """
    if any(digest(each[: base.size]) != base.sha256 for each in (mine, remote)):
        return None
    there = {each.strip() for each in _SECTION.split(remote[base.size :])}
    sections = _SECTION.split(mine[base.size :])
    own = b"".join(each for each in sections if each.strip() not in there).lstrip(b"\n")
    gap = b"" if remote.endswith(b"\n\n") else b"\n" if remote.endswith(b"\n") else b"\n\n"
    return remote + (gap + own if own else b"")


def _wanted(
    commit: Commit, may: Callable[[str], bool], old: Collection[str]
) -> dict[str, bytes | None]:
    """The documents that come here, once every name is judged, with those that came before.

    Raises:
        StoreRefused: a name is refused: nothing is written at all.
    """
    wanted = {path: data for path, data in commit.documents.items() if may(path)}
    gone = {path for path, data in wanted.items() if data is None}
    stores_tree.check({*wanted, *old} - gone)
    return wanted


def _left_out(commit: Commit, may: Callable[[str], bool]) -> list[str]:
    out = sorted(
        path for path, data in commit.documents.items() if data is not None and not may(path)
    )
    if not out:
        return []
    some = ", ".join(clean_line(each, 80) for each in out[:3])
    return [
        f"the store also holds {len(out)} file(s) that this collaboration does not share: {some}: not written"
    ]


def _write_log(
    tree: Tree, local: bytes, log: bytes, host: str, *, moved: bool
) -> tuple[bytes, str]:
    """Bring the local log to the store's: lines that only it has, and where they were moved to."""
    if local == log:
        return b"", ""
    path = os.path.join(tree.folder, LOG)
    if not local and not os.path.lexists(path):
        fault_point("before log")
        tree.replace(LOG, log)
        return b"", ""
    if local.startswith(log) and not moved:
        return local[len(log) :], ""
    rogue = b"" if log.startswith(local) else local[_common(local, log) :]
    kept = tree.keep(LOG, rogue, host) if rogue else ""
    fault_point("before log")
    start = len(local) - len(rogue)
    try:
        with locked(path) as file:
            if rogue:
                file.cut(start, len(local))
            if len(log) > start:
                file.append(log[start:], start)
    except LogError as error:
        raise Refused(f"{error}; run the same command again") from None
    return rogue, kept


def _common(local: bytes, log: bytes) -> int:
    """The size of the whole lines with which both begin."""
    size = 0
    for one, other in zip(local.splitlines(True), log.splitlines(True), strict=False):
        if one != other:
            break
        size += len(one)
    return size


def _write_protocol(
    tree: Tree,
    protocol: bytes,
    old: Mapping[str, Entry],
    kept: dict[str, str],
    notes: list[str],
    host: str,
) -> None:
    """Bring protocol.json to the store's; what somebody wrote into it here is kept."""
    mine = tree.read(PROTOCOL)
    if mine == protocol:
        return
    if mine is not None and PROTOCOL in old and digest(mine) != old[PROTOCOL].sha256:
        kept[PROTOCOL] = tree.keep(PROTOCOL, mine, host)
        notes.append(
            f"protocol.json is the store's: what was written into it here is in {kept[PROTOCOL]}"
        )
    fault_point("before protocol")
    tree.replace(PROTOCOL, protocol)


def changed_here(tree: Tree, base: Base, paths: Collection[str]) -> dict[str, bytes]:
    """Documents that are not as the store has them, with their bytes. Deleted ones are left out.

    Raises:
        NotShared: one is too large to be shared.
        OSError: one cannot be read.
    """
    found = {}
    for path in sorted(paths):
        data = tree.read(path)
        known = base.files.get(path)
        if data is not None and (known is None or digest(data) != known.sha256):
            found[path] = data
    return found
