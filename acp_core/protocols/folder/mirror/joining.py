"""A mirror in a folder of a reader: written read-only, judged first, and shown; nothing else."""

from __future__ import annotations

import os

from acp_core.files.mirrored import FILE
from acp_core.model.text import clean_line
from acp_core.stores import base as manifests
from acp_core.stores import mirror
from acp_core.stores.base import Base
from acp_core.stores.engine import Commit, Engine, HistoryRewritten, StoreRefused
from acp_core.stores.mirror import Manifest, PiecesMissing
from acp_core.stores.tree import Tree


def is_reader(folder: str | os.PathLike[str]) -> bool:
    """Whether this account reads in a folder what another host conducts."""
    return bool(manifests.pinned_reads(os.fspath(folder)))


def bring(folder: str, engine: Engine, commit: Commit | None = None) -> tuple[str, ...]:
    """Make a reader's folder what the store holds; the names of files that changed.

    Args:
        folder: the reader's; it is held.
        engine: the store.
        commit: all that the store holds, where that was read.

    Raises:
        Refused: the store cannot be read, or what it holds is refused; nothing was written then.
        OSError: a file could not be written.
    """
    base, before = manifests.read_base(folder), mirror.read(folder)
    mark = manifests.pinned_reads(folder)
    if commit is None:
        commit = engine.read(base.tip if base and before else None)
        if base and before and commit.tip == base.tip:
            return ()
    if not mirror.is_manifest(commit.protocol):
        raise HistoryRewritten("the store holds something else by now: it is no longer a mirror")
    manifest = mirror.decode(commit.protocol)
    _must_continue(manifest, before, mark)
    try:
        changed = mirror.restore(folder, manifest, before, commit.documents)
    except PiecesMissing:
        commit = engine.read(None)
        manifest = mirror.decode(commit.protocol)
        _must_continue(manifest, before, mark)
        changed = _whole(folder, manifest, before, commit)
    data = mirror.encode(manifest)
    Tree(folder).replace(FILE, data, sync=False)
    manifests.write_base(folder, Base(commit.tip, {}))
    return tuple(changed)


def _whole(folder: str, manifest: Manifest, before: Manifest | None, commit: Commit) -> list[str]:
    try:
        return mirror.restore(folder, manifest, before, commit.documents)
    except PiecesMissing:
        raise StoreRefused("pieces of the mirror are missing in the store: refused") from None


def _must_continue(manifest: Manifest, before: Manifest | None, mark: str) -> None:
    """Refuse what is not the mirror that was seen here, or an earlier state of it.

    Raises:
        HistoryRewritten: it is another one, or was put back.
    """
    if manifest.mark != mark:
        raise HistoryRewritten(
            f"the store holds another mirror of that name, of {clean_line(manifest.host, 80)}: ask the others"
        )
    if before is not None and before.mark == mark and manifest.number < before.number:
        raise HistoryRewritten(
            f"the store holds state {manifest.number} of the mirror, less than the {before.number} that this folder "
            "has seen: it was put back"
        )
