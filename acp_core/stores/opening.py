"""From an address to the engine of its store, imported only when it is needed."""

from __future__ import annotations

from importlib import import_module

from acp_core.stores.address import GIT, Address
from acp_core.stores.engine import Engine, StoreRefused

_EXTRA = 'install the extra: pip install "acp-tui[postgres]"'


def open_engine(address: Address) -> Engine:
    """The engine for an address. No connection is made yet.

    Raises:
        StoreRefused: this machine lacks what the engine needs.
    """
    if address.engine == GIT:
        from acp_core.stores.git import GitEngine

        return GitEngine(address)
    try:
        made: Engine = import_module("acp_core.stores.postgres").PostgresEngine(address)
    except ModuleNotFoundError as error:
        raise StoreRefused(f"PostgreSQL is not available here ({error.name}): {_EXTRA}") from None
    return made
