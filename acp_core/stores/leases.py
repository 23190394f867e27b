"""Leases: which host acts for a participant, as stores keep it. Standard library only."""

from __future__ import annotations

import json
import re
from typing import Any

from acp_core.stores.engine import Lease

_LONGEST = 500


def ref_word(text: str) -> str:
    """A name as part of a ref or a file name: as it is where it is plain, else in hex after ``x.``."""
    plain = re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", text)
    return text if plain else f"x.{text.encode('utf-8', 'surrogatepass').hex()}"


def lease_file(participant: str) -> str:
    """The name of the file that says who acts for a participant."""
    return f"{ref_word(participant)}.json"


def encode_lease(lease: Lease) -> bytes:
    """A lease as a file."""
    return json.dumps(lease._asdict(), ensure_ascii=True, sort_keys=True).encode() + b"\n"


def decode_lease(data: bytes) -> Lease | None:
    """A lease that a stranger may have written; None where it is none."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    texts = [value.get(name) for name in ("participant", "host", "boot", "account", "since", "by")]
    epoch = value.get("epoch")
    if not all(isinstance(each, str) and len(each) <= _LONGEST for each in texts):
        return None
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch < 1 << 53:
        return None
    participant, host, boot, account, since, by = (str(each) for each in texts)
    return Lease(participant, host, boot, account, epoch, since, by)
