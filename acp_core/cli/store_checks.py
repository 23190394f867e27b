"""The stores of shared collaborations, as ``acp doctor`` looks at them: PostgreSQL databases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acp_core.cli.check import Check, State
from acp_core.model.errors import AcpError
from acp_core.model.text import clean_line
from acp_core.stores.address import POSTGRES, Address, is_address, parse, without_password
from acp_core.stores.base import is_shared, pinned_address

_GROUP = "Stores"


def stores(paths: Sequence[str]) -> Iterator[Check]:
    """The checks of each database that is named, or in which a named folder is shared.

    Args:
        paths: folders, and addresses of stores.
    """
    seen: set[str] = set()
    for path in paths:
        try:
            address = _address(path)
        except AcpError as error:
            name = clean_line(without_password(path.partition("?")[0]), 200)
            yield Check(_GROUP, name, State.WARN, "cannot be used", str(error))
            continue
        if address is None or address.engine != POSTGRES or address.url in seen:
            continue
        seen.add(address.url)
        yield from _database(address.url)


def _address(path: str) -> Address | None:
    if is_address(path):
        return parse(path)
    return pinned_address(path) if is_shared(path) else None


def _database(url: str) -> Iterator[Check]:
    from acp_core.stores.postgres.health import examine

    for fact in examine(url):
        state = State.WARN if fact.advice else State.OK
        value = fact.value if fact.name != "connection" else f"{clean_line(url, 200)}: {fact.value}"
        yield Check(_GROUP, fact.name, state, value, fact.advice)
