"""Whether a repository holds more collaborations than is good for it: each push lists all of its branches."""

from __future__ import annotations

from acp_core.stores.address import GIT, Address
from acp_core.stores.engine import SharingError
from acp_core.stores.git_objects import ObjectStore

MOST = 500


def advice(address: Address) -> str:
    """What is said of a store that holds too many; "" of any other, and where it cannot be seen."""
    if address.engine != GIT:
        return ""
    objects = ObjectStore(address.url)
    try:
        with objects.held():
            count = len(objects.remote_refs("refs/heads/acp/*/log"))
    except SharingError:
        return ""
    if count <= MOST:
        return ""
    return (
        f"The repository holds {count} collaborations, and each push lists them all: use one repository for each "
        "project."
    )
