"""How keys and signatures are written: the scheme's name, and base64url (core specification, 6.2)."""

from __future__ import annotations

import base64
import binascii

SCHEME = "ed25519"


def to_base64(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64(text: object) -> bytes | None:
    """The bytes of base64url with or without padding, or None."""
    if not isinstance(text, str) or not text.isascii():
        return None
    plain = text.rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
