"""From an address to the engine of its store, imported only when it is needed."""

from __future__ import annotations

from importlib import import_module

from acp_core.stores.address import GIT, Address
from acp_core.stores.engine import Engine


def open_engine(address: Address) -> Engine:
    """The engine for an address. No connection is made yet."""
    if address.engine == GIT:
        from acp_core.stores.git import GitEngine

        return GitEngine(address)
    # By its name: rooms that agents run under a bare Python come here, and never need psycopg.
    made: Engine = import_module("acp_core.stores.postgres.engine").PostgresEngine(address)
    return made
