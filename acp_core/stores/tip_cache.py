"""What this account knows of a collaboration at a tip: so that an append need not ask before it publishes.

It lies in the account's cache folder, not with the collaboration: whoever writes there cannot make
a host believe in a lease. Publishing is refused where the store has moved on, so that what is known
of a tip is as good as what is read. Standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.person.paths import cache_folder
from acp_core.stores.address import Address
from acp_core.stores.engine import Commit, Lease, Tip, decode_lease, encode_lease

_LIMIT = 16 << 20


class Known:
    """What is known of one collaboration."""

    def __init__(self, address: Address) -> None:
        name = hashlib.sha256(address.text.encode()).hexdigest()[:32]
        self._path = cache_folder() / "known" / f"{name}.json"

    def at(self, tip: Tip) -> Commit | None:
        """What stands at a tip beside log and documents; None where that is not known."""
        try:
            value: Any = json.loads(read_bounded(self._path, _LIMIT))
            if value["tip"] != tip._asdict():
                return None
            leases = [decode_lease(each.encode()) for each in value["leases"]]
            protocol = base64.b64decode(value["protocol"])
        except (Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return Commit(tip, b"", protocol, {}, {each.participant: each for each in leases if each})

    def keep(self, tip: Tip, protocol: bytes, leases: Mapping[str, Lease]) -> None:
        """Keep it for the next call; without a cache folder nothing is kept."""
        value = {
            "tip": tip._asdict(),
            "protocol": base64.b64encode(protocol).decode(),
            "leases": [encode_lease(each).decode() for each in leases.values()],
        }
        with contextlib.suppress(OSError):
            modes.private_folder(self._path.parent)
            atomic.replace(self._path, json.dumps(value).encode(), sync=False, private=True)
