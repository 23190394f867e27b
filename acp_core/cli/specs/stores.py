"""Commands about the stores of shared collaborations, apart from any folder."""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec
from acp_core.protocols.kit.command import Commands

_URL = Field(
    "url", help="Address of the database, without a password: postgresql://USER@HOST/DATABASE.",
    position=True, required=True, metavar="URL",
)  # fmt: skip
_EXITS = (
    (0, "done"),
    (2, "refused, or invalid input"),
    (6, "the database cannot be reached"),
    (8, "the database refused it"),
    (130, "interrupted"),
)

INIT = ActionSpec(
    "init",
    "Prepare a database",
    "Prepare a PostgreSQL database as a store of shared collaborations.",
    fields=(_URL,),
    command="store init",
    help=("Creates the schema acp with its tables, and the roles acp_reader and acp_writer; brings tables "
          "of an earlier acp up to date. What exists already stays as it is: you can run this again. "
          "The password belongs into a service file, into ~/.pgpass or into PGPASSWORD."),
    examples=(
        "acp store init postgresql://admin@db.example.org/team",
        "acp store init postgresql://admin@db.example.org/team --json",
    ),
    exits=_EXITS,
    place=None,
    dry_run=False,
    run="acp_core.cli.store:init",
)  # fmt: skip
LIST = QuerySpec(
    "list",
    "List the collaborations in a PostgreSQL store: phase, waiting for, hosts, last change.",
    fields=(
        _URL,
        Field("phase", help="List only collaborations in this phase.", metavar="PHASE"),
        Field("limit", help="List at most this many.", kind=Kind.NUMBER, default=100, least=1, short="-n"),
    ),
    command="store list",
    help="The most recent change first. Reads no logs and no documents.",
    examples=("acp store list postgresql://anna@db.example.org/team --phase reviewing",),
    exits=_EXITS,
    run="acp_core.cli.store:listing",
)  # fmt: skip
STORE = Commands(
    "store", "Prepare and list stores of shared collaborations.", (INIT, LIST), "acp.store/1"
)
