"""Whether a folder that several accounts share lets each change what the others make."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from acp_core.cli.check import Check, State
from acp_core.files import claims, modes, owners

_GROUP = "Sharing"
_MOST = 2_000  # folders that are looked at
_LEFT_OUT = frozenset({".git", "node_modules", ".venv", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Me:
    """The account that asks.

    Attributes:
        uid: its number.
        name: its name.
        groups: the numbers of its groups, its own first.
    """

    uid: int
    name: str
    groups: tuple[int, ...]

    @staticmethod
    def here() -> Me:
        """The account of this process."""
        uid = owners.uid()
        return Me(uid, owners.account(uid), (os.getgid(), *os.getgroups()))


def sharing(paths: Sequence[str], me: Me | None = None) -> Iterator[Check]:
    """A check for each folder that is shared, or that several accounts use all the same.

    Args:
        paths: the folders.
        me: who asks; by default the account of this process.
    """
    if not hasattr(os, "getgroups"):
        return
    me = me or Me.here()
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield from _folder(path, found, me)


def _folder(path: str, found: os.stat_result, me: Me) -> Iterator[Check]:
    others = _others(path, found, me)
    group = modes.group_name(found.st_gid)
    is_meant = bool(found.st_mode & stat.S_ISGID) or _lets_others_in(found, me)
    if not is_meant and not others:
        return  # one account's own
    who = f"used by {', '.join(others)} too" if others else f"for the group {group}"
    if not modes.is_shared(found):
        lacks = [
            *([] if found.st_mode & stat.S_IWGRP else ["is not writable by its group"]),
            *([] if found.st_mode & stat.S_ISGID else ["does not pass its group on (setgid)"]),
        ]
        yield Check(_GROUP, path, State.WARN, f"{who}, but {' and '.join(lacks)}", _mend(path))
    elif closed := _closed(path):
        value = f"{who}, but {len(closed)} folders in it are not, such as {closed[0]}"
        yield Check(_GROUP, path, State.WARN, value, _mend(path))
    else:
        yield Check(_GROUP, path, State.OK, f"shared with the group {group}")
    if me.uid != 0 and me.uid != found.st_uid and found.st_gid not in me.groups:
        advice = f"sudo usermod -aG {shlex.quote(group)} {shlex.quote(me.name)}"
        value = f"{me.name} is not in the group {group}"
        yield Check(_GROUP, path, State.WARN, value, f"{advice}; it holds from the next login")


def _lets_others_in(found: os.stat_result, me: Me) -> bool:
    """Whether its group may write, and is more than an account's own group."""
    return bool(found.st_mode & stat.S_IWGRP) and found.st_gid != me.groups[0]


def _others(path: str, found: os.stat_result, me: Me) -> tuple[str, ...]:
    """The other accounts that own it, or took claims in it."""
    seen = [*claims.listed(path, "loops"), claims.seen(path, claims.CONDUCT)]
    uids = {found.st_uid, *(each.owner.uid for each in seen if each.owner)} - {me.uid}
    return tuple(sorted(owners.account(uid) for uid in uids))


def _closed(path: str) -> list[str]:
    """The folders below a shared one that are not shared themselves."""
    found: list[str] = []
    count = 0
    for above, names, _ in os.walk(path):
        names[:] = sorted(name for name in names if name not in _LEFT_OUT)
        for name in names:
            folder = Path(above, name)
            count += 1
            if count > _MOST:
                return found
            with contextlib.suppress(OSError):  # it has just gone
                if not folder.is_symlink() and not modes.is_shared(folder.stat()):
                    found.append(os.path.relpath(folder, path))
    return found


def _mend(path: str) -> str:
    place = shlex.quote(path)
    return (
        f"as its owner: chmod -R g+rwX {place}; find {place} -type d -exec chmod g+s {{}} +; "
        f"before that, chgrp -R GROUP {place} gives it to another group"
    )
