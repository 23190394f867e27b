"""Who a peer is: proven with its private keys when it connects.

An agent's instance id is an Ed25519 public key, so nobody else can be that agent. With its card
each side sends a nonce; the other signs it, together with who asks and who answers, and is taken
for nobody before that. Where it has a key for messages too (``--identity``), it proves that one
alike. Frames of this kind are sent only to who sent a nonce: agents of other makes see none.
"""

from __future__ import annotations

import os
from typing import TypeGuard

from acp_core.protocols.wire.network.identity import Identity, of_seed, verifies
from acp_core.protocols.wire.schema import Code, Json, Refusal
from acp_core.protocols.wire.schema.agent_card import PeerCard
from acp_core.protocols.wire.schema.keys import from_base64, to_base64
from acp_core.protocols.wire.schema.signatures import canonical

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


def check(frame: Json, nonce: str, own: Json, other: PeerCard) -> None:
    """Check what came for a nonce of ours.

    Raises:
        Refusal: it does not prove what the card says.
    """
    given = frame.get("sigs")
    signatures = [from_base64(each) for each in given[:4]] if isinstance(given, list) else []
    body = _body(nonce, other.card, own)
    for key in _keys(other):
        if not any(signature and verifies(key, signature, body) for signature in signatures):
            raise Refusal(Code.FORBIDDEN, "it did not prove its identity")


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
