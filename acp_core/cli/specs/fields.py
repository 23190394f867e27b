"""Options that several commands have which hold for every protocol: described here once."""

from __future__ import annotations

from acp_core.model.action_field import PLACE, Field, Kind
from acp_core.model.action_spec import Spec
from acp_core.protocols.kit.command import Commands

FOLDER = PLACE._replace(default=None, required=True)
"""The collaboration, which must be named."""
FOLDERS = Field(
    "folders", help="Folders of the collaborations.", kind=Kind.LIST, items=Kind.FOLDER,
    position=True, flag="--folder", metavar="FOLDER", form=False,
)  # fmt: skip
PATHS = Field(
    "paths", help=("Folder to search, with all folders below it (default: here, or `paths` in "
                   "config.toml)."),
    kind=Kind.LIST, items=Kind.FOLDER, position=True, flag="--path", aliases=("--folder",),
    metavar="PATH", form=False,
)  # fmt: skip
UTC = Field("utc", help="Show times in UTC.", kind=Kind.FLAG)
THEME = Field("theme", help="Theme to use instead of the one in config.toml.", metavar="NAME")
CHAIN = Field(
    "chain", help="Include the collaborations that FOLDER continues, and those that continue FOLDER.",
    kind=Kind.FLAG,
)  # fmt: skip
OUTPUT = Field(
    "output", help="Output file, written completely or not at all (default: standard output).",
    kind=Kind.FILE, short="-o",
)  # fmt: skip


def command_of(spec: Spec) -> Commands:
    """The command `acp NAME` of an act or a query."""
    return Commands(spec.name, spec.sentence, (spec,), f"acp.{spec.name}/1")
