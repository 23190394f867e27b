"""The commands with which people mend a collaboration: repair and continue.

Each function takes the arguments after the command's name and returns the exit code. Standard
library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.kit.command_line import Parser, program, run, say, say_json

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.damage import Plan

FORCE = "write although the file system is one on which locks protect nothing"


def repair_parser() -> Parser:
    """The arguments of `acp repair`."""
    parser = Parser(
        prog=program("repair"),
        description="Mend what can be mended in a collaboration's files: shows the damage and the "
        "exact change, asks, keeps a copy, mends, and validates again. Exit codes: 0 nothing to "
        "mend, or mended and valid; 1 not confirmed; 2 something is left that cannot be mended.",
    )
    parser.add_argument("folder", nargs="?", help="the collaboration (default: this folder)")
    parser.add_argument("--folder", dest="named", metavar="FOLDER", help="the same")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show")
    parser.add_argument("--force", action="store_true", help=FORCE)
    parser.add_argument("--json", action="store_true", help="print it as JSON; needs --yes")
    return parser


def repair(arguments: Sequence[str]) -> int:
    """Mend a collaboration's files."""
    return run(lambda: _repair(arguments))


def _repair(arguments: Sequence[str]) -> int:
    options = repair_parser().parse_args(arguments)
    from acp_core.protocols.folder.write import damage
    from acp_core.protocols.folder.write import repair as mending

    folder = _folder(options.folder, options.named)
    if options.json and not (options.yes or options.dry_run):
        raise Refused("--json needs --yes or --dry-run: there is nobody to ask")
    plan = damage.diagnose(folder, datetime.now(UTC))
    if not options.json:
        _show(plan)
    copies: tuple[str, ...] = ()
    mended = False
    if plan.fixes and not options.dry_run:
        if not options.yes and not _confirmed():
            say("not mended: nothing was changed")
            return 1
        copies = mending.repair(plan, force=options.force).copies
        mended = True
    return _conclude(plan, folder, mended, copies, options.json)


def _show(plan: Plan) -> None:
    from acp_core.protocols.folder.write.repair import diff

    for number, fix in enumerate(plan.fixes, 1):
        say(f"{number}. {fix.sentence}")
        for line in diff(fix).split("\n"):
            say(f"   {line}")
    for reason in plan.hopeless:
        say(f"cannot be mended: {reason}")
    if not plan.fixes and not plan.hopeless:
        say("nothing to mend")


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise Refused("there is nobody to ask: use --yes to mend it")
    sys.stdout.write("Mend it? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _conclude(plan: Plan, folder: str, mended: bool, copies: Sequence[str], as_json: bool) -> int:
    """Validate again and say how it stands; the exit code follows."""
    from acp_core.protocols.folder.rules import validate

    report = validate(folder)
    valid = report.exit_code() < 2
    pending = bool(plan.fixes) and not mended
    if as_json:
        from acp_core.protocols.folder.write.repair import diff

        say_json(
            {
                "schema": "acp.repair/1",
                "folder": folder,
                "mended": mended,
                "valid": valid,
                "fixes": [
                    {"file": fix.name, "text": fix.sentence, "diff": diff(fix)}
                    for fix in plan.fixes
                ],
                "hopeless": list(plan.hopeless),
                "copies": list(copies),
            }
        )
        return 0 if valid and not pending else 2
    for path in copies:
        say(f"kept a copy: {path}")
    if mended or not plan.fixes:
        word = "fixed" if valid else "not fixed"
        say(f"{word}: {report.lines()[0]}" if mended else report.lines()[0])
        for line in report.lines()[1:]:
            say(f"  {line}")
    return 0 if valid and not pending else 2


def continue_parser() -> Parser:
    """The arguments of `acp continue`."""
    parser = Parser(
        prog=program("continue"),
        description="Go on in a new folder where a collaboration ended, blocked or completed: its "
        "documents, participants and gates are carried over, and each folder names the other.",
    )
    parser.add_argument("folder", nargs="?", help="the collaboration (default: this folder)")
    parser.add_argument("--folder", dest="named", metavar="FOLDER", help="the same")
    parser.add_argument("--to", metavar="FOLDER", help="the new folder (default: NAME-2, NAME-3)")
    parser.add_argument("--answer", default="", help="how the blocker is resolved")
    parser.add_argument("--answer-file", metavar="FILE", help="the same, from a file")
    parser.add_argument("--objective", default="", help="a new objective (default: the old one)")
    parser.add_argument("--force", action="store_true", help=FORCE)
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def continue_in_new_folder(arguments: Sequence[str]) -> int:
    """Go on in a new folder."""
    return run(lambda: _continue(arguments))


def _continue(arguments: Sequence[str]) -> int:
    options = continue_parser().parse_args(arguments)
    from acp_core.protocols.folder.write import continuation

    folder = _folder(options.folder, options.named)
    answer = options.answer
    if options.answer_file:
        answer = _text_of(options.answer_file)
    continued = continuation.continue_in_new_folder(
        folder, options.to, answer, objective=options.objective, force=options.force
    )
    if options.json:
        say_json({"schema": "acp.continue/1", "from": folder, **continued._asdict()})
    elif continued.existed:
        say(f"Continued before, in {continued.folder}")
    else:
        say(f"Continued in {continued.folder}")
    return 0


def _folder(given: str | None, named: str | None) -> str:
    """The folder that the arguments name; the current one where they name none."""
    if given is not None and named is not None and given != named:
        raise Refused(f"two folders are named: {given} and {named}")
    return given or named or os.curdir


def _text_of(path: str) -> str:
    from acp_core.files.reading import Unreadable, read_bounded

    try:
        return read_bounded(path, schema.MAX_DOCUMENT).decode()
    except Unreadable as error:
        raise Refused(f"{path}: {error}") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: not UTF-8 at byte {error.start + 1}") from None
