"""``acp store``: a database that holds shared collaborations is prepared, and listed."""

from __future__ import annotations

from acp_core.cli import fields, output
from acp_core.cli.output import Cell, Column, dump, say, terminal
from acp_core.model import format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.text import clean_line
from acp_core.protocols.kit.values import Values
from acp_core.stores.address import POSTGRES, BadAddress, parse

SCHEMA = "acp.store/1"
_COLUMNS = (
    Column("collaboration", 20, names=True),
    Column("phase", 12),
    Column("waiting for", 14),
    Column("hosts", 10, drop=1),
    Column("events", 6, right=True),
    Column("changed", 7, right=True),
)


def init(given: Values) -> int:
    """Prepare a database; say what was done, and what an administrator has to do."""
    from acp_core.stores.postgres import link

    url = _database(given.url)
    connection = link.connect(url)
    import psycopg

    try:
        prepared = link.prepare(connection)
    except psycopg.Error as error:
        raise link.refusal(url, error) from None
    finally:
        connection.close()
    facts = link.examine_database(url)
    if given.json:
        say(dump({
            "schema": SCHEMA, "url": url, "version_before": prepared.before, "version": prepared.after,
            "made": list(prepared.made), "left": list(prepared.left),
            "checks": [fact._asdict() for fact in facts],
        }))  # fmt: skip
        return 0
    for each in prepared.made:
        say(f"created {each}")
    if not prepared.made:
        say(f"nothing to do: the tables have version {prepared.after}")
    for each in prepared.left:
        say(f"not done: {each}")
    for fact in facts:
        if fact.advice:
            say(f"note: {fact.name}: {fact.value}: {fact.advice}")
    say(f"{clean_line(url, 300)} is ready: acp share FOLDER '{clean_line(url, 300)}'")
    return 0


def listing(given: Values) -> int:
    """Print the collaborations of a database."""
    from acp_core.stores.postgres.hosts import Overview

    overview = Overview(_database(given.url))
    try:
        overview.refresh()
    finally:
        overview.close()
    found = [each for each in overview.listed.values() if given.phase in ("", None, each.phase)]
    shown = found[: given.limit]
    if given.json:
        say(dump({
            "schema": SCHEMA, "at": fields.time(utc_now()), "total": len(found),
            "collaborations": [
                {"id": each.id, "phase": clean_line(each.phase, 80), "seq": each.seq,
                 "waiting": [clean_line(name, 80) for name in each.waiting],
                 "updated": fields.time(each.updated),
                 "hosts": [host.state.host for host in each.runners]}
                for each in shown
            ],
        }))  # fmt: skip
        return 0
    now = utc_now()
    rows = [
        [
            Cell(each.id, "head"),
            Cell(clean_line(each.phase, 80) or "-"),
            Cell(", ".join(clean_line(name, 80) for name in each.waiting) or "-"),
            Cell(", ".join(host.state.host for host in each.runners) or "-"),
            Cell(str(each.seq)),
            Cell(format.age(each.updated, now)),
        ]
        for each in shown
    ]
    for line in output.table(_COLUMNS, rows, terminal()) if rows else ():
        say(line)
    say(f"{len(shown)} of {len(found)} collaborations" if rows else "No collaborations to list.")
    return 0


def _database(text: str) -> str:
    """The address of a database.

    Raises:
        CommandError: it is none, or names more than a database.
    """
    try:
        address = parse(text)
    except BadAddress as error:
        raise CommandError(str(error)) from None
    if address.engine != POSTGRES or address.id:
        raise CommandError("name a database: postgresql://USER@HOST/DATABASE, without #ID")
    return address.url
