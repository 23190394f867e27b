"""Sharing a collaboration with other hosts, joining one, reading it, asking its hosts, and ending that.

What is said of a store is believed only so far: its address binds as this account has pinned it,
and everything that it holds is judged before a file is written. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from acp_core.files import atomic, claims, git
from acp_core.files.atomic import group_name
from acp_core.files.read_only import FILE
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder.read.current_state import list_state
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.records import is_shared
from acp_core.protocols.folder.write import shared
from acp_core.protocols.folder.write.opened import (
    Opened,
    lock,
    open_locked,
    open_unlocked,
    read_protocol,
    take,
)
from acp_core.stores import address as addresses
from acp_core.stores import asking, hosts, mirror
from acp_core.stores import base as manifests
from acp_core.stores import tree as stores_tree
from acp_core.stores.address import Address
from acp_core.stores.base import Base, Entry, digest
from acp_core.stores.engine import (
    Asked,
    Change,
    Commit,
    Engine,
    HistoryRewritten,
    Lease,
    SharingError,
    StoreRefused,
    StoreUnreachable,
    Tip,
    TipMoved,
)
from acp_core.stores.hosts import open_engine
from acp_core.stores.materialise import Done, bring
from acp_core.stores.mirror import Manifest, PiecesMissing
from acp_core.stores.tree import Tree

MOST_EVENTS = 5_000  # beyond which a new collaboration is advised


class AlreadyThere(Refused):
    """The store has a collaboration of that id already."""


class Leaving(NamedTuple):
    """What sharing a folder gives to a store: ``files`` by name, and names that stay here."""

    address: Address
    files: dict[str, bytes]
    staying: tuple[str, ...]
    opened: Opened


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
    top = git.top(here)
    for root in (
        here,
        top if top and os.path.dirname(top) != top else here,
    ):  # not all of a machine
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
    if addresses.is_shared(folder):
        raise Refused(f"{folder} is shared already; `acp unshare {folder}` ends that")
    opened = open_unlocked(folder)
    _refuse_external(folder, opened)
    tree = Tree(folder)
    listed = shared.shared_names(opened.protocol)
    listed |= {each.doc for each in opened.entries if each.doc and shared.is_note(each.doc)} - {
        records.PROTOCOL_FILE
    }
    there = tree.files()
    files = {name: data for name in sorted(listed) if (data := tree.read(name)) is not None}
    stores_tree.check(files)
    protocol = {records.PROTOCOL_FILE, records.LOG_FILE}
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
        log = held.log.read(records.MAX_LOG)
        protocol = Tree(folder).read(records.PROTOCOL_FILE) or b""
        machine = opened.machine
        last = opened.last
        change = Change(
            log=log, line=None, seq=opened.last_seq, protocol=protocol, documents=plan.files, leases=leases,
            words=f"seq {opened.last_seq} {last.event if last else 'nothing'}: shared",
            account=hosts.account(), host=hosts.this_host(), phase=machine.phase,
            waiting=tuple(machine.waiting), standing=list_state(opened.protocol, opened.history),
        )  # fmt: skip
        addresses.pin(folder, plan.address)
        try:
            tip = _put(engine, plan.address, change)
        except BaseException:
            addresses.unpin(folder)
            raise
        addresses.write_share(folder, plan.address)
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
    has_content = os.path.isdir(folder) and bool(os.listdir(folder))
    agreed = addresses.agreed_address(folder) if has_content else None
    if agreed not in (None, address):
        raise Refused(
            f"this account shares {folder} at {clean_line(agreed.text, 300)}: `acp unshare {folder}` ends that first"
        )
    is_agreed = agreed is not None
    if is_agreed or addresses.is_shared(folder):
        return _pin_too(folder, address, is_agreed=is_agreed)
    if has_content:
        raise Refused(f"{folder} has other content: join into a new or empty folder")
    with open_engine(address) as engine:
        commit = engine.read(None)
        reads = ""
        if mirror.is_manifest(commit.protocol):
            reads = mirror.decode(commit.protocol).mark
        else:
            judged(commit, folder)
        made = not os.path.isdir(folder)
        atomic.shared_folder(folder)
        try:
            addresses.pin(folder, address, reads=reads)
            addresses.write_share(folder, address)
            with manifests.held(folder):
                if reads:
                    bring_mirror(folder, engine, commit)
                    return Done(Base(commit.tip, {}), commit, b"")
                return bring(folder, engine, None, hosts.this_host(), shared.is_shared_name)
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
        protocol = records.decode_protocol(commit.protocol)
    except ValueError as error:
        raise Refused(f"the store's protocol.json is refused: {error}") from None
    if records.dialect_of(protocol) == records.UNKNOWN_DIALECT:
        raise Refused("the store's protocol.json is of a schemaVersion that this acp does not know")
    if len(commit.added) > records.MAX_LOG:
        raise Refused("the store's log is too large")
    may = shared.is_shared_name(commit.protocol, commit.added)
    stores_tree.check(path for path in commit.documents if may(path))
    opened = take(folder, protocol, commit.added)
    _refuse_external(folder, opened)
    return opened


def _pin_too(folder: str, address: Address, *, is_agreed: bool) -> Done:
    """Agree to the store of a folder that is shared already: by another account, or by this one.

    Args:
        folder: the shared folder.
        address: of its store.
        is_agreed: this account has agreed to that before: what a program has made of the folder's word
            since is put right.
    """
    if addresses.pinned_mark(folder):
        raise Refused(f"{folder} holds the run itself, and fills the mirror: join it elsewhere")
    try:
        if not is_agreed:
            addresses.pin(folder, address)
            addresses.pinned_address(folder)
        with open_engine(address) as engine, manifests.held(folder):
            base = manifests.read_base(folder)
            commit = engine.read(None)
            reads = ""
            if mirror.is_manifest(commit.protocol):
                if not os.path.lexists(os.path.join(folder, FILE)):
                    raise Refused(f"{folder} holds the run itself: only its owner shares it")
                reads = mirror.decode(commit.protocol).mark
                addresses.pin(folder, address, reads=reads)
            else:
                judged(commit, folder)
                _refuse_another(folder, commit)
            if is_agreed:
                addresses.put_back(folder, address)
            if reads:
                bring_mirror(folder, engine, commit)
                return Done(Base(commit.tip, {}), commit, b"")
            return bring(folder, engine, base, hosts.this_host(), shared.is_shared_name)
    except BaseException:
        if not is_agreed:
            addresses.unpin(folder)
        raise


def _refuse_another(folder: str, commit: Commit) -> None:
    """Refuse a folder that holds another collaboration than the store, of the same place.

    Raises:
        Refused: its log begins with another event.
    """
    log = Tree(folder).read(records.LOG_FILE) or b""
    if log and log.partition(b"\n")[0] != commit.added.partition(b"\n")[0]:
        raise Refused(f"{folder} has other content: join into a new or empty folder")


def _clear(folder: str, made: bool) -> None:
    addresses.unpin(folder)
    with contextlib.suppress(OSError):
        if made:
            shutil.rmtree(folder)
        else:
            shutil.rmtree(os.path.join(folder, ".acp"))


def protect(folder: str) -> None:
    """From now on, only acp appends in a folder that this account shares.

    Raises:
        Refused: it is not shared, or several accounts write there.
        OSError: the configuration cannot be written.
    """
    address = addresses.pinned_address(folder)
    refuse_group(folder)
    with manifests.held(folder):
        addresses.pin(folder, address, only_acp=True)
        stores_tree.protect(folder)


def refuse_group(folder: str) -> None:
    """Refuse to protect the log where other accounts write it, too.

    Raises:
        Refused: they do: none of them could change its mode.
    """
    if atomic.is_shared(os.stat(folder)):
        raise Refused(
            f"{folder} belongs to a group that writes there: --exclusive is for a folder of one account"
        )


def put_back(folder: str) -> tuple[str, ...]:
    """Make log and protocol.json what the store holds, whatever stands here; what was kept of it.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    with open_engine(addresses.pinned_address(folder)) as engine, manifests.held(folder):
        host = hosts.this_host()
        done = bring(
            folder, engine, manifests.read_base(folder), host, shared.is_shared_name, strict=True
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
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared")
    said: tuple[str, ...] = ()
    try:
        if not addresses.pinned_mark(folder) and not is_reader(folder):
            with open_engine(addresses.pinned_address(folder)) as engine:
                shared.release(folder, engine)
    except addresses.NewerManifest:
        raise  # what else it has written there is not known here
    except (SharingError, Refused) as error:
        said = (f"the other hosts do not know yet that this machine left: {error}",)
    if addresses.is_exclusive(folder):
        stores_tree.release(folder)
    for name in (addresses.SHARE, manifests.BASE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    with contextlib.suppress(FileNotFoundError):
        atomic.sync_folder(os.path.join(folder, ".acp"))
    addresses.unpin(folder)
    return said


def _entries(files: dict[str, bytes], protocol: bytes) -> dict[str, Entry]:
    all_files = {**files, records.PROTOCOL_FILE: protocol}
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


_FOLDER, _FILE = 0o2070, 0o060

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_MOST = 10_000  # files and folders


def open_to(folder: str, group: str) -> int:
    """Let the accounts of a group write in the folder; how many files and folders were changed.

    Raises:
        Refused: there is no such group, or this account cannot give the folder to it.
        OSError: a mode could not be changed.
    """
    number = group_number(group)
    claims.prepare(folder)
    changed = 0
    for count, path in enumerate(_all(os.path.realpath(folder)), 1):
        if count > _MOST:
            raise Refused(
                f"{folder} holds more than {_MOST} files and folders: --group is not for it"
            )
        changed += _give(path, number, group)
    return changed


def group_number(group: str) -> int:
    """The number of a group.

    Raises:
        Refused: there is none of that name.
    """
    try:
        import grp

        return grp.getgrnam(group).gr_gid
    except (ImportError, KeyError):
        raise Refused(f"no group named {clean_line(group, 100)} on this machine") from None


def _all(folder: str) -> Iterator[str]:
    """The folder and what is in it, links and folders of other programs left out."""
    yield folder
    for at, folders, files in os.walk(folder):
        below = os.path.relpath(at, folder)
        folders[:] = [
            each
            for each in folders
            if (not each.startswith(".") or (below == "." and each == claims.HOME))
            and not os.path.islink(os.path.join(at, each))
        ]
        for name in (*folders, *files):
            path = os.path.join(at, name)
            found = os.lstat(path)
            hidden = name.startswith(".") and below == "." and name != claims.HOME
            if not hidden and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
                yield path


def _give(path: str, number: int, group: str) -> int:
    """Give a file or a folder to the group; 1 where that changed it."""
    fd = os.open(path, _FLAGS)
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            return 0  # it is another file, too, which an agent may have given this name
        mode = stat.S_IMODE(found.st_mode)
        wanted = mode | (_FOLDER if stat.S_ISDIR(found.st_mode) else _FILE)
        if found.st_gid == number and mode == wanted:
            return 0
        try:
            if found.st_gid != number:
                os.fchown(fd, -1, number)
            os.fchmod(fd, wanted)
        except PermissionError:
            raise Refused(
                f"{path} cannot be given to {clean_line(group, 100)}: it belongs to another account, or this account is "
                f"not a member of the group (it is {group_name(found.st_gid)}'s now)"
            ) from None
        return 1
    finally:
        os.close(fd)


def is_reader(folder: str | os.PathLike[str]) -> bool:
    """Whether this account reads in a folder what another host conducts."""
    return bool(addresses.pinned_reads(os.fspath(folder)))


def bring_mirror(folder: str, engine: Engine, commit: Commit | None = None) -> tuple[str, ...]:
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
    mark = addresses.pinned_reads(folder)
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


_STEP = 0.5  # seconds between two looks for the answer

_NAMED = 20  # hosts that are named where another one was meant


class Wanted(NamedTuple):
    """What is asked for: see `Asked`; ``wait`` are the seconds for which the answer is waited for."""

    host: str
    verb: str
    participant: str
    text: str = ""
    seconds: float = asking.LIFE
    wait: float = 0.0


def checked(folder: str, wanted: Wanted) -> Asked:
    """The request, judged by what this host knows. Asks no store.

    Raises:
        Refused: it cannot be made.
    """
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared; `acp share {folder} URL` shares it")
    me = hosts.this_host()
    if wanted.verb in asking.PERMITS:
        return asking.about(wanted.host, wanted.verb, wanted.participant, {}, "")
    if wanted.host == me:
        raise Refused(f"{me} is this host: use `acp launch`, `acp stop` or `acp nudge`")
    people = records.participant_ids(read_protocol(folder))
    if wanted.participant not in people:
        raise Refused(
            f"participant {wanted.participant!r} is not listed in protocol.json (participants: {', '.join(people)})"
        )
    by = f"{hosts.account()} on {me}"
    return asking.made(
        wanted.host, wanted.verb, wanted.participant, wanted.text, by, wanted.seconds
    )


def ask(folder: str, wanted: Wanted) -> Asked:
    """Ask a host, and wait for its answer; the request as it stands then.

    Raises:
        Refused: the request cannot be made, or the store does not have it.
    """
    request = checked(folder, wanted)
    with open_engine(addresses.pinned_address(folder)) as engine:
        names = sorted(each.state.host for each in engine.hosts())
        if wanted.host not in names:
            known = ", ".join(clean_line(each, 80) for each in names[:_NAMED]) or "none"
            raise Refused(
                f"no host named {clean_line(wanted.host, 80)} was heard of (hosts: {known})"
            )
        asking.send(engine, request)
        return answered(engine, request, wanted.wait)


def answered(engine: Engine, request: Asked, seconds: float) -> Asked:
    """The request with its answer, if that comes in time."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        with contextlib.suppress(StoreUnreachable):  # it is asked, whatever becomes of a look
            for each in engine.requests(request.host):
                if each.id == request.id and each.state:
                    return each
        time.sleep(min(_STEP, left))
    return request


_SHOWN_ANSWER = 300


def request_sentence(request: Asked) -> str:
    """What a host is asked to do."""
    who = clean_line(request.participant, 200)
    return {
        "start": f"start {who}'s loop",
        "stop": f"stop {who}'s loop",
        "nudge": f"send {who} a message",
        "take": f"let {who} act there",
        asking.ALLOW: f"allow once what {who} asks for",
        asking.REJECT: f"reject what {who} asks for",
    }.get(request.verb, clean_line(f"{request.verb} {who}", 200))


def answer_of(request: Asked) -> str:
    """How a request stands, in words."""
    said = f": {clean_line(request.sentence, _SHOWN_ANSWER)}" if request.sentence else ""
    return f"{clean_line(request.state, 40)}{said}" if request.state else "open"
