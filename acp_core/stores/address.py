"""The address of a shared collaboration: which store, and which collaboration in it.

``git+ssh://USER@HOST/PATH#ID``, ``git+https://HOST/PATH#ID``, ``git+file:///PATH#ID`` (``ssh://``,
``https://``, ``file://`` and an absolute path are rewritten to these), ``USER@HOST:PATH``, and
``postgresql://USER@HOST/DATABASE?OPTIONS#ID``. An address is given to other programs: what could
be an option, a command or a secret there is refused before any of them is started.

``.acp/share.json`` of a shared folder names its store; it binds only as far as this account has pinned
the same address in its own configuration, because agents can write in the folder. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import unicodedata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from acp_core.files import atomic, claims
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import pin_of, pins_folder

GIT = "git"
POSTGRES = "postgresql"
ONLY = "only ssh, https, file paths and PostgreSQL"
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SCHEME = re.compile(r"([a-z][a-z0-9+]*)://", re.IGNORECASE)
_SCP = re.compile(r"(?P<who>[^/:@\[\]]+@)?(?P<host>[^/:@\[\]]+|\[[0-9a-fA-F:.]+\]):(?P<path>.+)")

_AUTHORITY = re.compile(
    r"(?:(?P<user>[^@]*)@)?(?P<host>[^@:\[\]]+|\[[0-9a-fA-F:.]+\])?(?::(?P<port>[0-9]{1,5}))?"
)

_WORD = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
_SECRET = re.compile(r"pass(word|file)?|sslpassword|.*secret.*|.*token.*", re.IGNORECASE)
_LONGEST = 2_000
_PATTERN = frozenset("?*[]&;()")
_SCP_LINK = "git+scp://"


class BadAddress(Refused):
    """An address of a shared collaboration that cannot be used; the message says why."""


class Address(NamedTuple):
    """Where a shared collaboration is.

    Attributes:
        engine: `GIT` or `POSTGRES`.
        url: the store, as its own program takes it, without a password and without the id.
        id: the collaboration in it; "" where the address names only a store.
    """

    engine: str
    url: str
    id: str = ""

    @property
    def text(self) -> str:
        """The address as people write it."""
        store = f"git+{self.url}" if self.engine == GIT and "://" in self.url else self.url
        return f"{store}#{self.id}" if self.id else store

    @property
    def typed(self) -> str:
        """The address as it is typed into a shell: quoted where one would take it for a pattern."""
        if not _PATTERN.intersection(self.text):
            return self.text
        import shlex  # late: few addresses need it

        return shlex.quote(self.text)

    @property
    def link(self) -> str:
        """The address as one word that nobody takes for a path: what stands for it in lists."""
        return self.text if "://" in self.text else f"{_SCP_LINK}{self.text}"

    @property
    def path(self) -> str:
        """The store's folder on this machine; "" where it is elsewhere."""
        return self.url.removeprefix("file://") if self.url.startswith("file://") else ""

    def named(self, id: str) -> Address:
        """The address of a collaboration in the same store.

        Raises:
            BadAddress: the id is none.
        """
        return self._replace(id=checked_id(id))


def checked_id(id: str) -> str:
    """An id of a collaboration or a host, if it is one.

    Raises:
        BadAddress: it is none.
    """
    if not _ID.fullmatch(id):
        raise BadAddress(
            f"{clean_line(id, 80)} is not an id: use lower-case letters, digits and hyphens, at most 64"
        )
    return id


def is_address(text: str) -> bool:
    """Whether a word on a command line is meant as the address of a store, right or wrong.

    Paths are not: they may be folders.
    """
    return bool(_SCHEME.match(text)) or (not text.startswith(("/", ".")) and "@" in text)


def is_repository(word: str) -> bool:
    """Whether a word without a scheme is meant as a repository by ssh: ``USER@HOST:PATH``."""
    return "@" in word and bool(_SCP.fullmatch(word)) and not word.startswith(("/", ".", "-"))


def parse(text: str) -> Address:
    """An address as people write it.

    Raises:
        BadAddress: it is none, or acp does not use what it names.
    """
    store, separator, id = text.removeprefix(_SCP_LINK).partition("#")
    if len(text) > _LONGEST or any(unicodedata.category(each)[0] in "CZ" for each in text):
        raise _refused(text, "it has spaces, control characters or more than 2,000 characters")
    if store.startswith("-"):
        raise _refused(text, "it begins with a hyphen")
    if separator:
        checked_id(id)
    found = _SCHEME.match(store)
    scheme = found[1].lower() if found else ""
    if scheme in ("postgresql", "postgres"):
        return Address(POSTGRES, f"postgresql://{_database(text, store[len(scheme) + 3 :])}", id)
    return Address(GIT, _repository(text, store, scheme), id)


def _repository(text: str, store: str, scheme: str) -> str:
    """The address of a git repository, in a form that git is given."""
    plain = scheme.removeprefix("git+")
    rest = store[len(scheme) + 3 :] if scheme else store
    if "::" in re.sub(r"\[[0-9a-fA-F:.]+\]", "", store):
        raise _refused(text, ONLY)
    if "%" in store or "\\" in store or "?" in store:
        raise _refused(text, "acp takes no %, \\ or ? in the address of a repository")
    if not scheme and store.startswith("/"):
        return f"file://{_path(text, store)}"
    if plain == "file":
        if not rest.startswith("/"):
            raise _refused(text, "a path on this machine is written as file:///PATH")
        return f"file://{_path(text, rest)}"
    if not scheme and (scp := _SCP.fullmatch(store)):
        place = _authority(text, (scp["who"] or "") + scp["host"])
        if scp["path"].startswith("/"):
            return f"ssh://{place}{_path(text, scp['path'])}"
        return f"{place}:{_path(text, '/' + scp['path'])[1:]}"  # below the account's home, or a forge's
    if plain in ("ssh", "https"):
        authority, slash, path = rest.partition("/")
        if not authority or not path:
            raise _refused(text, "it names no host, or no repository there")
        return f"{plain}://{_authority(text, authority)}{_path(text, slash + path)}"
    raise _refused(text, ONLY)


def _database(text: str, rest: str) -> str:
    before, question, query = rest.partition("?")
    authority, slash, name = before.partition("/")
    for each in authority.split(","):
        _authority(text, each, empty=True)
    for key, _ in parse_qsl(query, keep_blank_values=True):
        if _SECRET.fullmatch(key):
            raise _refused(
                text.partition("?")[0],
                f"{clean_line(key, 80)} does not belong into an address: use a service file or the environment",
            )
    if any(unicodedata.category(each)[0] == "C" for each in unquote(rest)):
        raise _refused(text, "it has control characters")
    return f"{authority}{slash}{name}{question}{query}"


def _authority(text: str, authority: str, *, empty: bool = False) -> str:
    """User, host and port, if they are plain words and hold no password."""
    found = _AUTHORITY.fullmatch(unquote(authority) if empty else authority)
    if found is None:
        raise _refused(text, "its host cannot be read")
    user, host = found["user"], found["host"] or ""
    if user is not None and ":" in user:
        raise _refused(text, "a password does not belong into an address")
    if user is not None and not _WORD.fullmatch(user):
        raise _refused(text, "its user is not a plain name")
    on_socket = empty and (not host or host.startswith("/"))
    if not on_socket and not host.startswith("[") and not _WORD.fullmatch(host):
        raise _refused(text, "its host is not a plain name")
    return authority


def _path(text: str, path: str) -> str:
    parts = path.split("/")[1:]
    while parts and not parts[-1]:
        parts.pop()
    if not parts or any(part in ("", ".", "..") or part.startswith("-") for part in parts):
        raise _refused(text, "its path is not a plain one")
    return "/" + "/".join(parts)


def _refused(text: str, reason: str) -> BadAddress:
    return BadAddress(f"{without_password(clean_line(text, 200))} is refused: {reason}")


def without_password(text: str) -> str:
    """A text in which no address shows its password."""
    return re.sub(r"(://[^/@\s:]*):[^/@\s]*@", r"\1:***@", text)


SHARE = ".acp/share.json"
_SHARE_VERSION = 1
LIMIT = 4 << 20  # bytes of a file about a store


class BadManifest(Refused):
    """A file of a shared folder about its store cannot be read; the message says what mends it."""


class NewerManifest(Refused):
    """A newer acp has shared the folder; this one leaves it alone."""


class NotPinned(Refused):
    """The folder does not name the store that this account agreed to. Nothing was asked of any."""


def is_shared(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder says that it is shared with other hosts."""
    return os.path.lexists(os.path.join(folder, SHARE))


def pinned_address(folder: str) -> Address:
    """The address of a folder's store, as the folder and this account's configuration say alike.

    Raises:
        NotPinned: this account did not share or join the folder, or at another address.
        NewerManifest: a newer acp wrote share.json.
        BadManifest: share.json cannot be read.
    """
    if not is_shared(folder) and (pinned := agreed_address(folder)):
        raise NotPinned(
            f"{folder} is shared at {clean_line(pinned.text, 300)}, but {SHARE} is gone: another program removed it; "
            f"{_cures(folder, pinned)}"
        )
    there = _address_in(folder)
    pinned = agreed_address(folder)
    if pinned is None:
        raise NotPinned(
            f"{folder} says that it is shared at {clean_line(there.text, 300)}, but this account has not "
            f"joined it: `acp join {clean_line(there.typed, 300)} {folder}`"
        )
    if pinned != there:
        raise NotPinned(
            f"{SHARE} in {folder} names {clean_line(there.text, 300)}, but this account shares it at "
            f"{clean_line(pinned.text, 300)}: another program changed it; acp connected to neither; "
            f"{_cures(folder, pinned)}"
        )
    return pinned


def _cures(folder: str, pinned: Address) -> str:
    verb = "share" if pinned_mark(folder) else "join"
    address = clean_line(pinned.typed, 300)
    again = f"acp join {address} {folder}" if verb == "join" else f"acp share {folder} {address}"
    return f"`{again}` puts it back, `acp unshare {folder}` ends the sharing"


def agreed_address(folder: str) -> Address | None:
    """Where this account has agreed to share a folder, whatever the folder says; None for nowhere.

    Raises:
        BadManifest: the agreement cannot be read.
    """
    pin = pin_of(folder)
    try:
        return parse(str(json.loads(read_bounded(pin, LIMIT))["address"]))
    except Unreadable as error:
        if not error.missing:
            raise BadManifest(f"{pin}: {error}") from None
        return None
    except (ValueError, TypeError, KeyError, RecursionError, BadAddress) as error:
        raise BadManifest(
            f"{pin} cannot be read ({error}): remove it, and `acp join` again"
        ) from None


def pin(
    folder: str, address: Address, *, only_acp: bool = False, mark: str = "", reads: str = ""
) -> None:
    """Agree to a folder's store, for this account.

    Args:
        folder: the shared folder.
        address: of its store.
        only_acp: nothing else appends there, see `acp_core.stores.tree`.
        mark: of the mirror that this folder fills, see `acp_core.stores.mirror`.
        reads: of the mirror that this folder shows.

    Raises:
        OSError: the configuration cannot be written.
    """
    place = pin_of(folder)
    atomic.private_folder(Path(pins_folder()))
    value: dict[str, Any] = {"folder": os.path.realpath(folder), "address": address.text}
    value |= {"exclusive": only_acp} | ({"mark": mark} if mark else {})
    value |= {"reads": reads} if reads else {}
    atomic.replace(place, json.dumps(value, indent=2).encode() + b"\n", private=True)


def unpin(folder: str) -> None:
    """Take the agreement to a folder's store back."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(pin_of(folder))


def is_exclusive(folder: str) -> bool:
    """Whether this account has chosen that only acp appends in the folder."""
    return _pinned(folder).get("exclusive") is True


def pinned_mark(folder: str) -> str:
    """The mark of the mirror that this account fills from a folder; "" where it fills none."""
    return str(_pinned(folder).get("mark", ""))


def pinned_reads(folder: str) -> str:
    """The mark of the mirror that this account reads in a folder; "" where it reads none."""
    return str(_pinned(folder).get("reads", ""))


def _pinned(folder: str) -> dict[str, Any]:
    try:
        value = json.loads(read_bounded(pin_of(folder), LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def pins_changed() -> int:
    """When this account last agreed to a store, or took that back; 0 where it never did."""
    try:
        return os.stat(pins_folder()).st_mtime_ns
    except OSError:
        return 0


def pinned_folders() -> dict[str, Address]:
    """Every folder that this account has shared or joined, with its store, as it agreed to it.

    A folder may be gone, or name another store by now: `pinned_address` tells.
    """
    found: dict[str, Address] = {}
    place = pins_folder()
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(place)):
            with contextlib.suppress(
                Unreadable, ValueError, TypeError, KeyError, RecursionError, BadAddress
            ):
                value = json.loads(read_bounded(os.path.join(place, name), LIMIT))
                found[str(value["folder"])] = parse(str(value["address"]))
    return found


def _address_in(folder: str) -> Address:
    place = os.path.join(folder, SHARE)
    try:
        value = json.loads(read_bounded(place, LIMIT))
        if newer := newer_share(value):
            raise NewerManifest(f"{place}: {newer}")
        return parse(str(value["url"]))
    except (Unreadable, ValueError, TypeError, KeyError, RecursionError, BadAddress) as error:
        raise BadManifest(
            f"{place} cannot be read ({clean_line(str(error), 200)}): `acp join` the folder again"
        ) from None


def newer_share(value: Any) -> str:
    """Why share.json, as it was decoded, is not for this acp, where a newer one wrote it; else ""."""
    schema = str(value.get("schema", "")) if isinstance(value, dict) else ""
    kind, _, version = schema.partition("/")
    if kind != "acp.share" or not version.isdecimal() or int(version[:9]) <= _SHARE_VERSION:
        return ""
    return (
        f"the folder was shared by a newer acp (format {int(version[:9])}, this one knows {_SHARE_VERSION}): "
        "update acp on this machine"
    )


_SHARE_SCHEMA = f"acp.share/{_SHARE_VERSION}"


def put_back(folder: str, address: Address) -> None:
    """Have the folder name the store again that this account agreed to, where it does not.

    Raises:
        NewerManifest: a newer acp wrote share.json: it is left alone.
        Refused: acp cannot coordinate there.
        OSError: it cannot be written.
    """
    try:
        if _address_in(folder) == address:
            return
    except BadManifest:
        pass
    write_share(folder, address)


def write_share(folder: str, address: Address) -> None:
    """Say in the folder where it is shared; ``.acp/.gitignore`` comes first.

    Raises:
        Refused: acp cannot coordinate there.
        OSError: it cannot be written.
    """
    claims.prepare(folder)
    value = {
        "schema": _SHARE_SCHEMA,
        "url": address.text,
        "id": address.id,
        "engine": address.engine,
    }
    atomic.replace(os.path.join(folder, SHARE), json.dumps(value, indent=2).encode() + b"\n")
