"""``acp skill install DIR``: what it prints."""

from __future__ import annotations

import json
import sys

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder.skill.contents import Incomplete
from acp_core.protocols.folder.skill.install import Plan, carry_out, plan
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.skill/1"
WOULD = {
    "create": "would install {n} files in {folder}",
    "upgrade": "would update {folder} from {previous} to {version}",
    "nothing": "{folder} is up to date ({version})",
}
DID = {
    "create": "installed the skill in {folder} ({version}, {n} files)",
    "upgrade": "updated {folder} from {previous} to {version}",
    "nothing": "{folder} is up to date ({version})",
}


def install(given: Values) -> int:
    """Write the skill into a folder, or where a program looks; the exit code.

    Raises:
        Refused: it cannot be installed there; nothing was changed.
    """
    if given.program:
        if given.folder:
            raise Refused("give either DIR or --for")
        from acp_core.protocols.folder.skill.for_programs import install_for

        return install_for(given)
    if not given.folder:
        raise Refused("give DIR, the skill's own folder, or --for with a program")
    if given.project or given.collaboration or given.participant:
        raise Refused("--project, --collaboration and --participant need --for")
    try:
        planned = plan(given.folder, force=given.force)
        left = "" if given.dry_run else carry_out(planned)
    except Incomplete as error:
        raise Refused(str(error)) from None
    if given.json:
        print(json.dumps(_fields(planned, given.dry_run)))
    else:
        _print(planned, given.dry_run)
    if left:
        print(
            f"note: {clean_line(left, 2000)} contains files that acp did not install",
            file=sys.stderr,
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
