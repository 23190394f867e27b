"""Stores for the tests that want one. Where no PostgreSQL server can be run, its tests are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.databases import prepared
from tests.stores.hosts import repository
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


@pytest.fixture(params=["git", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that holds nothing yet, as people write it."""
    if request.param == "git":
        return f"git+file://{repository(tmp_path)}"
    server: Server = request.getfixturevalue("postgres")
    return prepared(server.database())
