"""Who an agent is: its Ed25519 key file, signatures of messages, and proofs on connections (6.2)."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable
from acp_core.protocols.wire.schema.basics import (
    SCHEME,
    Code,
    Json,
    WireError,
    from_base64,
    now_text,
    outside,
    time_of,
    to_base64,
)
from acp_core.protocols.wire.schema.bodies import PeerCard

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
        atomic.shared_folder(place.parent)
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


if TYPE_CHECKING:
    pass

FRESH = 300.0  # seconds by which the time that was signed may be off when the message comes


def sign_message(message: Json, secret: str | None, identity: Identity | None) -> Json:
    """``message`` with the signatures that the agent gives; the HMAC comes first."""
    signed = dict(message)
    if secret is not None:
        signed["sig"] = hmac_of(secret, message)
    if identity is not None:
        signed["identity"] = {
            "scheme": SCHEME,
            "public_key": identity.public_text,
            "sig": to_base64(identity.sign(canonical(signed))),
        }
    return signed


def check_signatures(message: Json, secret: str | None, pinned: str | None = None) -> Json:
    """The flags of a message that came from outside.

    Args:
        message: as it came, without flags (see `schema.basics.outside`).
        secret: the shared secret, where there is one.
        pinned: the public key by which the sender is known, where it is.
    """
    flags: Json = {}
    if secret is not None:
        given = message.get("sig")
        if given is None:
            flags["_sig_missing"] = True
        elif _same(given, hmac_of(secret, message)):
            flags["_sig_verified"] = True
        else:
            flags["_sig_invalid"] = True
    block = message.get("identity")
    if block is not None:
        flags |= _identity_flags(message, block, pinned)
    return flags


def missing_signature(message: Json, signer: str) -> Json:
    """The flag of a message without a signature by a key, where its sender is known by one.

    Args:
        message: as it came.
        signer: what that sender is called; "" where it is known by none.
    """
    return {"_ed25519_missing": signer} if signer and message.get("identity") is None else {}


def aged(flags: Json, message: Json, now: datetime) -> Json:
    """The flags of a message that comes now; one that was signed long ago may be a repetition."""
    verified = flags.get("_sig_verified") or flags.get("_ed25519_verified")
    at = time_of(message.get("ts"))
    fresh = at is not None and abs((now - at).total_seconds()) <= FRESH
    return {**flags, "_sig_old": True} if verified and not fresh else flags


def unverifiable(flags: Json) -> Json:
    """The flags of a message that was changed on its way: a signature that fails means nothing."""
    wrong = {name for name in ("_sig_invalid", "_ed25519_invalid") if flags.get(name)}
    if not wrong or "_ed25519_other_key" in flags:
        return flags
    return {**{k: v for k, v in flags.items() if k not in wrong}, "_unverifiable": True}


def hmac_of(secret: str, message: Json) -> str:
    """``HMAC-SHA256(secret, "{message_id}:{ts}")`` in hex, both fields as transmitted."""
    signed = f"{message.get('message_id', '')}:{message.get('ts', '')}"
    return hmac_sha256(secret.encode(), signed.encode("utf-8", "replace"))


def hmac_sha256(key: bytes, data: bytes) -> str:
    """HMAC-SHA256 in hex (RFC 2104, RFC 4231)."""
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def canonical(message: Json, *, ascii_only: bool = False) -> bytes:
    """What Ed25519 signs: every field but ``identity``, sorted, without blanks.

    The specification's own code writes ``\\uXXXX`` for what is not ASCII (``ascii_only``), its
    identity document does not: both are accepted, the second is signed.
    """
    content = {name: value for name, value in message.items() if name != "identity"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only)
    return text.encode()


def _same(given: object, expected: str) -> bool:
    return (
        isinstance(given, str)
        and given.isascii()
        and hmac.compare_digest(given.lower(), expected.lower())
    )


def _identity_flags(message: Json, block: object, pinned: str | None) -> Json:
    if not isinstance(block, dict) or block.get("scheme") != SCHEME:
        return {"_ed25519_invalid": True}
    key, signature = from_base64(block.get("public_key")), from_base64(block.get("sig"))
    if key is None or signature is None or len(key) != 32 or len(signature) != 64:
        return {"_ed25519_invalid": True}

    bodies = (canonical(outside(message)), canonical(outside(message), ascii_only=True))
    if not any(verifies(key, signature, body) for body in bodies):
        return {"_ed25519_invalid": True}
    known = from_base64(pinned) if pinned else None
    if known is not None and known != key:
        return {"_ed25519_invalid": True, "_ed25519_other_key": True}
    return {"_ed25519_verified": True}


_FORM = "ed25519_"

_INSTANCE = f"instance:{_FORM}"


def instance_of(seed: str) -> Identity:
    """The identity of an instance, of its private key in base64url."""
    return of_seed(from_base64(seed) or b"")


def instance_id(instance: Identity) -> str:
    """The instance id that only the owner of the key can prove."""
    return f"{_FORM}{instance.public_text}"


def nonce() -> str:
    """What the other side has to sign."""
    return os.urandom(24).hex()


def is_nonce(value: object) -> TypeGuard[str]:
    """Whether that can be signed: bounded, and what we make ourselves."""
    return (
        isinstance(value, str) and 16 <= len(value) <= 128 and value.isalnum() and value.isascii()
    )


def owes(card: PeerCard) -> bool:
    """Whether who shows this card has to prove that it is who it says."""
    return bool(_keys(card))


def signatures_for(nonce: str, own: Json, other: PeerCard, *owners: Identity | None) -> Json:
    """What is sent for a nonce; ``own``: the card that was shown to the other side.

    Args:
        owners: of the instance's key, and of the one for messages.
    """
    body = _body(nonce, own, other.card)
    return {"sigs": [to_base64(owner.sign(body)) for owner in owners if owner]}


def check_proofs(frame: Json, nonce: str, own: Json, other: PeerCard) -> None:
    """Check what came for a nonce of ours.

    Raises:
        Refusal: it does not prove what the card says.
    """
    given = frame.get("sigs")
    signatures = [from_base64(each) for each in given[:4]] if isinstance(given, list) else []
    body = _body(nonce, other.card, own)
    for key in _keys(other):
        if not any(signature and verifies(key, signature, body) for signature in signatures):
            raise WireError(Code.FORBIDDEN, "it did not prove its identity")


def _keys(card: PeerCard) -> list[bytes]:
    instance = from_base64(card.identity.removeprefix(_INSTANCE))
    keys = [instance] if card.identity.startswith(_INSTANCE) else []
    if card.public_key is not None and (keys or card.proves):
        keys.append(from_base64(card.public_key))
    return [key or b"" for key in keys]


def _body(nonce: str, signer: Json, asker: Json) -> bytes:
    """What is signed: it serves for these two alone, and for no other purpose."""
    who = ("instance_id", "session_id", "identity")
    return canonical({
        "purpose": "acp.proof",
        "nonce": nonce,
        "signer": [signer.get(name) for name in who],
        "asker": [asker.get(name) for name in who],
    })  # fmt: skip
