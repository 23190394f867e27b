"""From an address to the engine of its store, to its list, or to its news; each imported when needed."""

from __future__ import annotations

from importlib import import_module

from acp_core.stores.address import GIT, Address
from acp_core.stores.engine import Engine, Listing, Standing, StoreNews


def open_engine(address: Address) -> Engine:
    """The engine for an address. No connection is made yet."""
    if address.engine == GIT:
        from acp_core.stores.git import GitEngine

        return GitEngine(address)
    # By its name: rooms that agents run under a bare Python come here, and never need psycopg.
    made: Engine = import_module("acp_core.stores.postgres.engine").PostgresEngine(address)
    return made


def open_listing(address: Address, standing: Standing) -> Listing:
    """The list of a store. No connection is made yet.

    Args:
        address: of the store.
        standing: reads a collaboration of which the store does not tell by itself.
    """
    if address.engine == GIT:
        from acp_core.stores.git_listing import GitListing

        return GitListing(address, standing)
    # By its name, as above.
    made: Listing = import_module("acp_core.stores.postgres.hosts").Overview(address.url, standing)
    return made


def open_news(address: Address, host: str) -> StoreNews:
    """The news of a store. No connection is made yet.

    Args:
        address: of the store.
        host: this host's name: what it is asked for is news, too.
    """
    if address.engine == GIT:
        from acp_core.stores.git_listing import GitNews

        return GitNews(address, host)
    # By its name, as above.
    made: StoreNews = import_module("acp_core.stores.postgres.engine").PostgresNews(
        address.url, host
    )
    return made
