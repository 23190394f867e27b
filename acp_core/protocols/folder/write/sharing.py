"""Sharing a collaboration with other hosts, joining one, reading it, and ending that.

What is said of a store is believed only so far: its address binds as this account has pinned it,
and everything that it holds is judged before a file is written. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import deliverables
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write import shared_documents as documents
from acp_core.protocols.folder.write.opened import Opened, lock, open_locked, open_unlocked, take
from acp_core.stores import address as addresses
from acp_core.stores import base as manifests
from acp_core.stores import hosts, names
from acp_core.stores.address import Address
from acp_core.stores.base import Base, Entry, digest
from acp_core.stores.engine import (
    Change,
    Commit,
    Engine,
    Lease,
    SharingError,
    Tip,
    TipMoved,
)
from acp_core.stores.materialise import Done, bring, changed_here
from acp_core.stores.opening import open_engine
from acp_core.stores.tree import Tree

MOST_EVENTS = 5_000  # beyond which a new collaboration is advised
_TRIES = 5


class AlreadyThere(Refused):
    """The store has a collaboration of that id already."""


class Leaving(NamedTuple):
    """What sharing a folder gives to a store: ``files`` by name, and names that stay here."""

    address: Address
    files: dict[str, bytes]
    staying: tuple[str, ...]
    opened: Opened


class Synced(NamedTuple):
    """What one look at the store did: documents that came and that left, and sentences about it."""

    came: tuple[str, ...]
    left: tuple[str, ...]
    notes: tuple[str, ...]
    done: Done


def address_for(folder: str, url: str, id: str) -> Address:
    """The address at which a folder is shared; the folder's name is its id where none is given.

    Raises:
        BadAddress: it cannot be used.
        Refused: agents that work in the folder could change the store itself.
    """
    address = addresses.parse(url)
    wanted = id or address.id or plain_id(os.path.basename(os.path.realpath(folder)))
    if id and address.id and id != address.id:
        raise Refused(
            f"the address ends in #{address.id}, and --id says {clean_line(id, 80)}: give one"
        )
    address = address.named(wanted)
    refuse_near(folder, address)
    return address


def refuse_near(folder: str, address: Address) -> None:
    """Refuse a store at a path where agents of this collaboration may write.

    Raises:
        Refused: whoever writes there writes the store's hooks, which run as this account.
    """
    if not address.path:
        return
    store, here = os.path.realpath(address.path), os.path.realpath(folder)
    top = here
    while os.path.dirname(top) != top and not os.path.lexists(os.path.join(top, ".git")):
        top = os.path.dirname(top)
    for root in (here, top if os.path.dirname(top) != top else here):
        if os.path.commonpath([store, root]) == root:
            raise Refused(
                f"{clean_line(address.text, 300)} is refused: the store is in {clean_line(root, 200)}, where agents may "
                "write, and its hooks would run as you"
            )


def leaving(folder: str, url: str, id: str) -> Leaving:
    """What would leave if the folder was shared. Writes nothing.

    Raises:
        Refused, BadAddress: it cannot be shared.
    """
    address = address_for(folder, url, id)
    if manifests.is_shared(folder):
        raise Refused(f"{folder} is shared already; `acp unshare {folder}` ends that")
    opened = open_unlocked(folder)
    _refuse_external(folder, opened)
    tree = Tree(folder)
    listed = documents.shared_names(opened.protocol)
    listed |= {each.doc for each in opened.entries if each.doc and documents.is_note(each.doc)} - {
        schema.PROTOCOL_FILE
    }
    there = tree.files()
    files = {name: data for name in sorted(listed) if (data := tree.read(name)) is not None}
    names.check(files)
    protocol = {schema.PROTOCOL_FILE, schema.LOG_FILE}
    staying = tuple(name for name in there if name not in files and name not in protocol)
    return Leaving(address, files, staying, opened)


def share(
    folder: str, url: str, id: str, leases: Mapping[str, Lease | None] = MappingProxyType({})
) -> Leaving:
    """Put a collaboration into a store, from where others join it.

    Args:
        folder: the collaboration.
        url, id: the store, and its name there; see `address_for`.
        leases: who acts where from the beginning.

    Raises:
        Refused, BadAddress: it is not shared.
        OSError: a file could not be written.
    """
    plan = leaving(folder, url, id)
    with open_engine(plan.address) as engine, lock(folder) as held:
        opened = open_locked(folder, held.log)
        log = held.log.read(schema.MAX_LOG)
        protocol = Tree(folder).read(schema.PROTOCOL_FILE) or b""
        machine = opened.machine
        last = opened.last
        change = Change(
            log=log, line=None, seq=opened.last_seq, protocol=protocol, documents=plan.files, leases=leases,
            words=f"seq {opened.last_seq} {last.event if last else 'nothing'}: shared",
            account=hosts.account(), host=hosts.this_host(), phase=machine.phase,
            waiting=tuple(machine.waiting),
        )  # fmt: skip
        manifests.pin(folder, plan.address)
        try:
            tip = _put(engine, plan.address, change)
        except BaseException:
            manifests.unpin(folder)
            raise
        manifests.write_share(folder, plan.address)
        manifests.write_base(folder, Base(tip, _entries(plan.files, protocol)))
    return plan


def _put(engine: Engine, address: Address, change: Change) -> Tip:
    """Make the collaboration in the store; one that a killed call has made is taken up again."""
    try:
        return engine.publish(None, change)
    except TipMoved:
        commit = engine.read(None)
        ours = {k: v for k, v in commit.documents.items() if v is not None} == dict(
            change.documents
        )
        if commit.added == change.log and commit.protocol == change.protocol and ours:
            return commit.tip
        raise AlreadyThere(
            f"{clean_line(address.text, 300)} exists in the store already: use `acp join`, or another --id"
        ) from None


def join(url: str, folder: str) -> Done:
    """Bring a shared collaboration into a folder of this host.

    Raises:
        Refused, BadAddress: it is not joined; nothing was written that is left.
        OSError: a file could not be written.
    """
    address = addresses.parse(url)
    if not address.id:
        raise Refused(f"{clean_line(url, 300)} names no collaboration: add #ID")
    refuse_near(folder, address)
    if manifests.is_shared(folder):
        return _pin_too(folder, address)
    if os.path.isdir(folder) and os.listdir(folder):
        raise Refused(f"{folder} has other content: join into a new or empty folder")
    with open_engine(address) as engine:
        judged(engine.read(None), folder)
        made = not os.path.isdir(folder)
        modes.shared_folder(folder)
        try:
            manifests.pin(folder, address)
            manifests.write_share(folder, address)
            with manifests.held(folder):
                return bring(folder, engine, None, hosts.this_host(), documents.is_shared_name)
        except BaseException:
            if manifests.read_base(folder) is None:
                _clear(folder, made)
            raise


def judged(commit: Commit, folder: str) -> Opened:
    """What a store holds, once it is certain that a folder can be made of it.

    Raises:
        Refused: it is no collaboration that this version of acp knows, or must not be written.
    """
    try:
        protocol = schema.decode_protocol(commit.protocol)
    except ValueError as error:
        raise Refused(f"the store's protocol.json is refused: {error}") from None
    if schema.dialect_of(protocol) == schema.UNKNOWN_DIALECT:
        raise Refused("the store's protocol.json is of a schemaVersion that this acp does not know")
    if len(commit.added) > schema.MAX_LOG:
        raise Refused("the store's log is too large")
    may = documents.is_shared_name(commit.protocol, commit.added)
    names.check(path for path in commit.documents if may(path))
    opened = take(folder, protocol, commit.added)
    _refuse_external(folder, opened)
    return opened


def _pin_too(folder: str, address: Address) -> Done:
    """Another account has joined this very folder: this one agrees to its store, too."""
    manifests.pin(folder, address)
    try:
        manifests.pinned_address(folder)
        with open_engine(address) as engine, manifests.held(folder):
            base = manifests.read_base(folder)
            return bring(folder, engine, base, hosts.this_host(), documents.is_shared_name)
    except BaseException:
        manifests.unpin(folder)
        raise


def _clear(folder: str, made: bool) -> None:
    manifests.unpin(folder)
    with contextlib.suppress(OSError):
        if made:
            shutil.rmtree(folder)
        else:
            shutil.rmtree(os.path.join(folder, ".acp"))


def sync(folder: str, engine: Engine, *, publish: bool = True) -> Synced:
    """Look at the store once: bring what is new, and publish documents that may leave.

    Args:
        folder: the shared folder.
        engine: its store.
        publish: whether documents that were changed here leave, too.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    host = hosts.this_host()
    came: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    with manifests.held(folder):
        for _ in range(_TRIES):
            base = manifests.read_base(folder)
            done = bring(folder, engine, base, host, documents.is_shared_name)
            came, notes = (*came, *done.written), (*notes, *done.notes)
            if not publish:
                return Synced(came, (), notes, done)
            try:
                return _publish(folder, engine, done, host, came, notes)
            except TipMoved:
                continue
    raise Refused("the store keeps moving on: try again")


def _publish(
    folder: str,
    engine: Engine,
    done: Done,
    host: str,
    came: tuple[str, ...],
    notes: tuple[str, ...],
) -> Synced:
    """Publish what a script appended, then documents whose participant acts here."""
    from acp_core.protocols.folder.write import shared

    if done.rogue and not done.kept_log:
        done = shared.publish_rogue(folder, engine, done, host)
        notes = (*notes, done.notes[-1])
    with lock(folder) as held:
        opened = open_locked(folder, held.log)
    changed = changed_here(Tree(folder), done.base, documents.candidates(opened, None))
    me = (host, hosts.account())
    here = [p for p, lease in done.commit.leases.items() if (lease.host, lease.account) == me]
    allowed = set().union(*(documents.may_change(opened, each) for each in here))
    left = {name: data for name, data in changed.items() if name in allowed}
    notes = (*notes, *documents.held_back(changed, allowed, opened.machine.phase))
    if not left:
        return Synced(came, (), notes, done)
    machine = opened.machine
    change = Change(
        log=done.log, line=None, seq=opened.last_seq, protocol=done.commit.protocol, documents=left,
        words=f"documents: {', '.join(left)}", account=me[1], host=host, phase=machine.phase,
        waiting=tuple(machine.waiting),
    )  # fmt: skip
    tip = engine.publish(done.base.tip, change)
    files = dict(done.base.files) | {n: Entry(digest(d), len(d)) for n, d in left.items()}
    base = Base(tip, files)
    manifests.write_base(folder, base)
    return Synced(came, tuple(left), notes, done._replace(base=base))


def release(folder: str, engine: Engine, participants: Sequence[str] = ()) -> tuple[str, ...]:
    """Give back the leases that this account has on this host; those of all where none is named.

    Raises:
        Refused: the store cannot be reached, or refuses it.
    """
    host, account = hosts.this_host(), hosts.account()

    def given_back(held: Mapping[str, Lease]) -> dict[str, Lease | None]:
        mine = (who for who, each in held.items() if (each.host, each.account) == (host, account))
        return {who: None for who in mine if not participants or who in participants}

    return tuple(_lease(folder, engine, given_back, "given back"))


def take_lease(folder: str, engine: Engine, participant: str, by: str) -> None:
    """Have a participant act on this host, unless it acts on another one.

    Raises:
        LeaseElsewhere: it does.
        Refused: the store cannot be reached, or refuses it.
    """

    def taken(held: Mapping[str, Lease]) -> dict[str, Lease | None]:
        lease = hosts.lease_for(held.get(participant), participant, by, hosts.this_host())
        return {participant: lease} if lease else {}

    _lease(folder, engine, taken, "acts here")


def _lease(
    folder: str,
    engine: Engine,
    wanted: Callable[[Mapping[str, Lease]], dict[str, Lease | None]],
    words: str,
) -> dict[str, Lease | None]:
    """Change leases as the store's own demand; what was changed."""
    host = hosts.this_host()
    with manifests.held(folder):
        for _ in range(_TRIES):
            base = manifests.read_base(folder)
            done = bring(folder, engine, base, host, documents.is_shared_name)
            leases = wanted(done.commit.leases)
            if not leases:
                return {}
            change = Change(
                log=done.log, line=None, seq=done.base.tip.seq, protocol=done.commit.protocol, leases=leases,
                words=f"{words}: {', '.join(leases)}", account=hosts.account(), host=host,
            )  # fmt: skip
            try:
                tip = engine.publish(done.base.tip, change)
            except TipMoved:
                continue
            after = {**done.commit.leases, **leases}
            manifests.write_leases(folder, {k: v for k, v in after.items() if v is not None})
            manifests.write_base(folder, Base(tip, done.base.files))
            return leases
    raise Refused("the store keeps moving on: try again")


def put_back(folder: str) -> tuple[str, ...]:
    """Make log and protocol.json what the store holds, whatever stands here; what was kept of it.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    with open_engine(manifests.pinned_address(folder)) as engine, manifests.held(folder):
        host = hosts.this_host()
        done = bring(
            folder, engine, manifests.read_base(folder), host, documents.is_shared_name, strict=True
        )
    return tuple(each for each in (*done.kept.values(), done.kept_log) if each)


def unshare(folder: str) -> tuple[str, ...]:
    """End the sharing of a folder here: it stays, and is a plain one again.

    Returns:
        Sentences about what could not be told to the others.

    Raises:
        Refused: it is not shared.
        OSError: a file could not be removed.
    """
    if not manifests.is_shared(folder):
        raise Refused(f"{folder} is not shared")
    said: tuple[str, ...] = ()
    try:
        with open_engine(manifests.pinned_address(folder)) as engine:
            release(folder, engine)
    except (SharingError, Refused) as error:
        said = (f"the others do not know yet that nobody acts here any more: {error}",)
    for name in (manifests.SHARE, manifests.BASE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    atomic.sync_folder(os.path.join(folder, ".acp"))
    manifests.unpin(folder)
    return said


def settle(folder: str, name: str, *, mine: bool) -> str:
    """Settle a document that was changed on both sides; a sentence on it.

    Args:
        folder: the shared folder.
        name: the document.
        mine: take the local text that gave way; else the store's, which stands there.

    Raises:
        Refused: nothing was kept of it.
        OSError: it cannot be written.
    """
    if reason := names.against(name):
        raise Refused(f"{clean_line(name, 200)} is not shared: {reason}")
    tree = Tree(folder)
    kept = [each for each in tree.kept(name) if not each.endswith(".settled")]
    if not kept:
        raise Refused(f"nothing is kept of {clean_line(name, 200)}")
    with manifests.held(folder):
        data = tree.read(kept[-1])
        if mine and data is not None:
            tree.replace(name, data)
        for each in kept:  # nothing is deleted
            os.rename(os.path.join(folder, each), os.path.join(folder, f"{each}.settled"))
    return (
        f"{name} is yours again; it is published with the next event"
        if mine
        else f"{name} stays as the store has it"
    )


def delete(folder: str, engine: Engine, name: str) -> None:
    """Delete a document on all hosts.

    Raises:
        Refused: it is required, not shared, or the store refuses it.
    """
    if name in (*schema.REQUIRED_FILES, documents.README):
        raise Refused(f"{name} is required: it cannot be deleted")
    host = hosts.this_host()
    with manifests.held(folder):
        done = bring(folder, engine, manifests.read_base(folder), host, documents.is_shared_name)
        if name not in done.base.files:
            raise Refused(f"{clean_line(name, 200)} is not in the store")
        change = Change(
            log=done.log, line=None, seq=done.base.tip.seq, protocol=done.commit.protocol,
            documents={name: None}, words=f"documents: {name} deleted", account=hosts.account(), host=host,
        )  # fmt: skip
        tip = engine.publish(done.base.tip, change)
        Tree(folder).remove(name)
        files = {each: entry for each, entry in done.base.files.items() if each != name}
        manifests.write_base(folder, Base(tip, files))


def _entries(files: dict[str, bytes], protocol: bytes) -> dict[str, Entry]:
    all_files = {**files, schema.PROTOCOL_FILE: protocol}
    return {name: Entry(digest(data), len(data)) for name, data in all_files.items()}


def _refuse_external(folder: str, opened: Opened) -> None:
    """Refuse external deliverables whose repository is not here.

    Raises:
        Refused: it does not resolve on this host.
    """
    declared = deliverables.declare(opened.protocol)
    root = deliverables.root_of(declared, folder)
    if declared.mode == deliverables.EXTERNAL and root.path is None:
        reason = root.problem or "protocol.json names no repository"
        raise Refused(
            f"the deliverables are in a repository that is not on this host ({reason}): check it out there first"
        )


def plain_id(name: str) -> str:
    """An id that resembles a folder's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64].strip("-") or "collaboration"
