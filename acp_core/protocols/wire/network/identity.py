"""An agent's Ed25519 identity: its key file, signing and verifying."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable
from acp_core.protocols.wire.schema import now_text
from acp_core.protocols.wire.schema.keys import SCHEME, from_base64, to_base64

DEFAULT = "~/.acp/identity.json"
_LARGEST = 1 << 16


class IdentityError(Unusable):
    """The key file cannot be used; the message is one line: file, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A key pair; ``public_text`` is the public key in base64url."""

    _key: Ed25519PrivateKey = field(repr=False)

    @property
    def public_text(self) -> str:
        """The public key as it stands in a card."""
        return to_base64(self._key.public_key().public_bytes_raw())

    def sign(self, data: bytes) -> bytes:
        """The signature of ``data``, 64 bytes."""
        return self._key.sign(data)


def of_seed(seed: bytes) -> Identity:
    """The identity of a private key of 32 bytes."""
    return Identity(Ed25519PrivateKey.from_private_bytes(seed))


def new_seed() -> str:
    """A new private key in base64url."""
    return to_base64(os.urandom(32))


def verifies(key: bytes, signature: bytes, data: bytes) -> bool:
    """Whether ``signature`` is that of ``data`` by the owner of the public ``key``."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def load_or_make(path: str | os.PathLike[str] = DEFAULT) -> Identity:
    """The identity in a key file; a new one, in a file of mode 0600, where there is none.

    Raises:
        IdentityError: the file can be read by others, holds no key, or cannot be made.
    """
    place = Path(os.path.expanduser(path))
    try:
        return _load(place)
    except FileNotFoundError:
        pass
    seed = os.urandom(32)
    made = of_seed(seed)
    content = {
        "scheme": SCHEME,
        "public_key": made.public_text,
        "private_key": to_base64(seed),
        "created_at": now_text(),
    }
    before = os.umask(0o077)
    try:
        modes.shared_folder(place.parent)
        atomic.create(place, json.dumps(content, indent=2).encode() + b"\n")
    except FileExistsError:  # another agent was faster
        return _load(place)
    except OSError as error:
        raise IdentityError(f"{place}: {error.strerror}") from None
    finally:
        os.umask(before)
    return made


def _load(place: Path) -> Identity:
    try:
        data = read_bounded(place, _LARGEST)
    except Unreadable as error:
        if error.missing:
            raise FileNotFoundError(place) from None
        raise IdentityError(f"{place}: {error.reason}") from None
    mode = stat.S_IMODE(os.stat(place).st_mode)
    if os.name == "posix" and mode & 0o077:
        raise IdentityError(f"{place}: others can read the private key (chmod 600 fixes this)")
    try:
        content = json.loads(data)
        seed = from_base64(content["private_key"]) if content["scheme"] == SCHEME else None
    except (ValueError, KeyError, TypeError, RecursionError):
        seed = None
    if seed is None or len(seed) != 32:
        raise IdentityError(f"{place}: not an Ed25519 key")
    return of_seed(seed)
