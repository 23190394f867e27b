"""The verbs that look after a run: recover, trust, migrate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files.text import clean_line
from acp_core.protocols.governed.commands.line import (
    as_objects,
    must_agree,
    parser_of,
    say_json,
    show,
)
from acp_core.protocols.governed.conduct import trust as trusting
from acp_core.protocols.governed.write import Refused, decide, set_aside
from acp_core.protocols.governed.write import changes as shown
from acp_core.protocols.governed.write import migrate as migrating
from acp_core.protocols.governed.write.accept import reserved_changed
from acp_core.protocols.governed.write.journal import interrupted
from acp_core.protocols.governed.write.opened import look, refuse_agents, who
from acp_core.protocols.kit.command_line import Parser, say


def recover_parser() -> Parser:
    """The arguments of `acp governed recover`."""
    parser = parser_of("recover", "Finish what a killed command had begun. Every command that "
                       "writes does so first; this one does nothing else.")  # fmt: skip
    parser.add_argument("--forget", action="store_true",
                        help="leave the files as they are: of what cannot be finished, and of "
                        "what somebody but acp wrote into the run's own files")  # fmt: skip
    parser.add_argument("--bring-back", action="store_true",
                        help="put the state back as acp wrote it last, where somebody else "
                        "changed it")  # fmt: skip
    parser.add_argument("--set-aside", action="store_true",
                        help="set aside what the agentxchain program left half written; it is "
                        "kept below .agentxchain/backups")  # fmt: skip
    return parser


def recover(arguments: Sequence[str]) -> int:
    """Finish what was interrupted."""
    options = recover_parser().parse_args(arguments)
    if not Path(options.folder).is_dir():
        raise Refused(f"{options.folder} is no folder")
    if options.bring_back:
        return _bring_back(options)
    if options.set_aside:
        return _set_aside(options)
    if options.dry_run:
        place = Path(options.folder).absolute()
        left = interrupted(place)
        told = f"would finish: {left.what} ({left.done} of {left.total} files)" if left else ""
        changed = () if left else reserved_changed(look(place))
        if changed and options.forget:
            told = f"would take as they are: {', '.join(changed)}"
        if options.json:
            say_json("recover", folder=options.folder, dry_run=True,
                     interrupted=left._asdict() if left else None, changed=changed)  # fmt: skip
        else:
            say(told or "nothing was interrupted")
        return 0
    became = decide.recover(options.folder, forget=options.forget)
    if options.json:
        say_json("recover", folder=options.folder, recovered=became._asdict() if became else None)
    elif became is None:
        say("nothing was interrupted")
    elif options.forget and not became.completed:
        say(f"{became.what}: {became.reason}")
    else:
        how = "finished" if became.completed else f"taken back ({became.reason})"
        say(f"{how}: {became.what}")
    return 0


def _bring_back(options: argparse.Namespace) -> int:
    if options.dry_run:
        opened = look(options.folder)
        changes = shown.changes(opened, None, [decide.bringing_back(opened)])
        if options.json:
            say_json("recover", folder=options.folder, dry_run=True, changes=as_objects(changes))
        else:
            show(changes)
        return 0
    decide.bring_back(options.folder)
    if options.json:
        say_json("recover", folder=options.folder, brought_back=True)
    else:
        say("the state is as acp wrote it last")
    return 0


def _set_aside(options: argparse.Namespace) -> int:
    now = datetime.now(UTC)
    if options.dry_run:
        opened = look(options.folder)
        changes = shown.changes(opened, None, set_aside.setting_aside(opened, now))
        if options.json:
            say_json("recover", folder=options.folder, dry_run=True, changes=as_objects(changes))
        else:
            show(changes)
        return 0
    kept = set_aside.set_aside(options.folder, now)
    if options.json:
        say_json("recover", folder=options.folder, set_aside=kept)
    else:
        for each in kept:
            say(f"kept as {clean_line(each, 300)}")
    return 0


def _agreeing(parser: Parser) -> Parser:
    parser.add_argument("--as", dest="by", default="", metavar="NAME", help="who decides")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def trust_parser() -> Parser:
    """The arguments of `acp governed trust`."""
    parser = parser_of("trust", "Show the hooks, and the services with an address of their own, "
                       "that the configuration names, and allow them as they stand.")  # fmt: skip
    return _agreeing(parser)


def trust(arguments: Sequence[str]) -> int:
    """Allow what the configuration names."""
    options = trust_parser().parse_args(arguments)
    refuse_agents()
    opened = look(options.folder)
    asked = trusting.asked(opened.config)
    if not options.json:
        for each in asked:
            say(each)
    if not asked or options.dry_run or trusting.is_trusted(opened.root):
        if options.json:
            say_json("trust", folder=options.folder, asked=asked,
                     trusted=trusting.is_trusted(opened.root), dry_run=options.dry_run)  # fmt: skip
        elif not asked:
            say("the configuration names nothing that has to be allowed")
        elif trusting.is_trusted(opened.root):
            say("this is allowed already")
        return 0
    if not must_agree(options, "Allow this, as it stands now?"):
        say("not allowed")
        return 1
    trusting.trust(opened.root)
    if options.json:
        say_json("trust", folder=options.folder, asked=asked, trusted=True)
    else:
        say("allowed, until one of them changes")
    return 0


def migrate_parser() -> Parser:
    """The arguments of `acp governed migrate`."""
    parser = parser_of("migrate", "Bring a run of an earlier version to this one: schema versions "
                       "where there are none, mandatory objections, a state that can be linked. "
                       "What is under way goes on.")  # fmt: skip
    return _agreeing(parser)


def migrate(arguments: Sequence[str]) -> int:
    """Migrate a run."""
    options = migrate_parser().parse_args(arguments)
    opened = look(options.folder)
    done, wanted = migrating.plan(opened, who(options.by), datetime.now(UTC))
    if options.dry_run:
        changes = shown.changes(opened, None, wanted)
        if options.json:
            say_json("migrate", folder=options.folder, dry_run=True, done=done,
                     changes=as_objects(changes))  # fmt: skip
        else:
            show(changes)
        return 0
    refuse_agents()
    if not must_agree(options, f"Migrate ({'; '.join(done)})?"):
        say("not migrated")
        return 1
    done = migrating.migrate(options.folder, who(options.by), datetime.now(UTC))
    if options.json:
        say_json("migrate", folder=options.folder, done=done)
    else:
        for each in done:
            say(each)
    return 0
