"""``acp skill install DIR``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from acp_core.files.text import clean_line
from acp_core.model.errors import Refused
from acp_core.protocols.folder.skill.contents import Incomplete
from acp_core.protocols.folder.skill.install import Plan, carry_out, plan

SCHEMA = "acp.skill/1"
WOULD = {
    "create": "would install {n} files in {folder}",
    "upgrade": "would bring {folder} from {previous} to {version}",
    "nothing": "{folder} is up to date ({version})",
}
DID = {
    "create": "installed the skill in {folder} ({version}, {n} files)",
    "upgrade": "brought {folder} from {previous} to {version}",
    "nothing": "{folder} is up to date ({version})",
}


def skill_parser() -> argparse.ArgumentParser:
    """The parser of ``acp skill``."""
    parser = argparse.ArgumentParser(
        prog="acp skill",
        description="The portable skill: what agents load to take part in a collaboration.",
    )
    acts = parser.add_subparsers(dest="act", required=True, metavar="install")
    install = acts.add_parser(
        "install",
        prog="acp skill install",
        help="write the skill into a folder, or bring it up to date there",
        description="Write SKILL.md, README.md and scripts into DIR, for example into the folder "
        "from which your agents load skills. The scripts need Python 3.11 and no package. An "
        "installed skill is brought up to date; files that acp did not install are never touched.",
    )
    install.add_argument("folder", metavar="DIR", help="the skill's own folder")
    install.add_argument(
        "--force", action="store_true", help="replace installed files that were edited since"
    )
    install.add_argument("--dry-run", action="store_true", help="only say what would be done")
    install.add_argument("--json", action="store_true", help=f"print a JSON object ({SCHEMA})")
    return parser


def skill(argv: Sequence[str]) -> int:
    """Run ``acp skill`` with the arguments after its name; the exit code: 0, or 2 for a refusal."""
    given = skill_parser().parse_args(argv)
    try:
        planned = plan(given.folder, force=given.force)
        left = "" if given.dry_run else carry_out(planned)
    except (Refused, Incomplete) as error:
        print(f"error: {clean_line(str(error), 2000)}", file=sys.stderr)
        return 2
    if given.json:
        print(json.dumps(_fields(planned, given.dry_run)))
    else:
        _print(planned, given.dry_run)
    if left:
        print(
            f"note: {clean_line(left, 2000)} holds files that acp did not install", file=sys.stderr
        )
    return 0


def _print(planned: Plan, dry_run: bool) -> None:
    sentence = (WOULD if dry_run else DID)[planned.verb]
    values = {
        "folder": planned.folder,
        "n": len(planned.files),
        "previous": planned.previous,
        "version": planned.version,
    }
    print(clean_line(sentence.format(**values), 2000))
    if dry_run and planned.verb != "nothing":
        for path in sorted(planned.files):
            print(f"  {path}")


def _fields(planned: Plan, dry_run: bool) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "folder": str(planned.folder),
        "verb": planned.verb,
        "done": not dry_run,
        "version": planned.version,
        "previous": planned.previous,
        "files": sorted(planned.files),
    }
