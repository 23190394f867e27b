"""Signatures of messages (core specification, sections 6.1 and 6.2).

A bad signature flags a message and never drops it. The flags begin with ``_``: they are set by
the receiver alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.protocols.wire.schema import Json, outside, time_of
from acp_core.protocols.wire.schema.keys import SCHEME, from_base64, to_base64

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.identity import Identity

HMAC_SCHEME = "hmac-sha256"
FRESH = 300.0  # seconds by which the time that was signed may be off when the message comes


def sign(message: Json, secret: str | None, identity: Identity | None) -> Json:
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


def check(message: Json, secret: str | None, pinned: str | None = None) -> Json:
    """The flags of a message that came from outside.

    Args:
        message: as it came, without flags (see `schema.outside`).
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


def missing(message: Json, signer: str) -> Json:
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
    from acp_core.protocols.wire.network.identity import verifies

    bodies = (canonical(outside(message)), canonical(outside(message), ascii_only=True))
    if not any(verifies(key, signature, body) for body in bodies):
        return {"_ed25519_invalid": True}
    known = from_base64(pinned) if pinned else None
    if known is not None and known != key:
        return {"_ed25519_invalid": True, "_ed25519_other_key": True}
    return {"_ed25519_verified": True}
