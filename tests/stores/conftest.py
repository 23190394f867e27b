"""A PostgreSQL server for the tests that want one; they are skipped where none can be run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.databases import prepared
from tests.support.postgres import NoServer, Server, running


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for all tests of this process. Nobody may stop it."""
    yield from _server()


@pytest.fixture
def mortal_postgres() -> Iterator[Server]:
    """A server of the test's own."""
    yield from _server()


def _server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    try:
        started = running()
        server = started.__enter__()
    except NoServer as reason:
        pytest.skip(str(reason))
    try:
        yield server
    finally:
        started.__exit__(None, None, None)


@pytest.fixture(scope="session")
def _database(postgres: Server) -> str:
    return postgres.database()


@pytest.fixture
def database(_database: str) -> str:
    """The address of a database that is prepared for acp, and holds nothing yet."""
    return prepared(_database)
