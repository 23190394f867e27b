"""``acp governed coordinator``: what a human does with an initiative, as commands.

Exit codes: 0 done; 1 done, but something failed (a resync); 2 refused, nothing done. Standard
library only.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn, TextIO

from acp_core.files.text import clean_line
from acp_core.protocols.governed.act import Refused
from acp_core.protocols.governed.coordinator import deciding, founding, telling, trust, who
from acp_core.protocols.governed.coordinator.deciding import Decision, Done
from acp_core.protocols.governed.coordinator.desk import Prepared, open_initiative
from acp_core.protocols.governed.coordinator.plan import read_plan
from acp_core.protocols.governed.initiative import read_initiative
from acp_core.protocols.governed.schema import Object

_SAYS_FOLDER = "the initiative's folder (default: this one)"


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        _complain(f"{message} (`{self.prog} --help` explains)")
        raise SystemExit(2)


def parser() -> argparse.ArgumentParser:
    """The arguments of `acp governed coordinator`."""
    top = Parser(
        prog="acp governed coordinator",
        description="Coordinate governed runs of several repositories: shared barriers, "
        "cross-repo gates, resync.",
    )
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)

    def verb(name: str, summary: str, *aliases: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=summary, description=summary, aliases=list(aliases))
        made.add_argument("folder", nargs="?", default=".", help=_SAYS_FOLDER)
        made.add_argument("--json", action="store_true", help="print one JSON object")
        made.set_defaults(verb=name)
        return made

    def writing(name: str, summary: str, *aliases: str) -> argparse.ArgumentParser:
        made = verb(name, summary, *aliases)
        made.add_argument("--dry-run", action="store_true", help="only show what would be done")
        return made

    def deciding_verb(name: str, summary: str, *aliases: str) -> argparse.ArgumentParser:
        made = writing(name, summary, *aliases)
        made.add_argument("--barrier", default="", help="which one (default: whose gate is open)")
        made.add_argument("--comment", default="", help="why")
        made.add_argument("--as", dest="name", metavar="NAME", help="who decides (default: you)")
        made.add_argument("--yes", action="store_true", help="do not ask")
        return made

    begin = writing("init", "Start an initiative from agentxchain-multi.json in FOLDER")
    begin.add_argument("--yes", action="store_true", help="do not ask")
    verb("status", "Say where the initiative stands")
    writing("step", "Look at all workstreams: hold who reached a barrier, open gates", "poll")
    deciding_verb("approve-barrier", "Approve a cross-repo gate; all workstreams cross", "approve")
    reject = deciding_verb("reject-barrier", "Reject it; workstreams go back to work", "reject")
    reject.add_argument(
        "--workstream", action="append", default=[], metavar="NAME",
        help="only this one goes back to work (may be repeated; default: all)",
    )  # fmt: skip
    writing("resync", "Go on after what failed was mended")
    writing("trust", "Let the scripts run that the configuration names, as they stand")
    return top


def main(arguments: Sequence[str]) -> int:
    """Run a verb; returns the exit code."""
    try:
        options = parser().parse_args(arguments)
        code = _VERBS[options.verb](options, telling.root_of(options.folder))
        sys.stdout.flush()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    except Refused as error:
        _complain(str(error))
        return 2
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        _complain(f"{named}{error.strerror or error}")
        return 2
    except KeyboardInterrupt:
        return 130
    return code


def _init(options: argparse.Namespace, root: Path) -> int:
    who.refuse_agents()
    plan = founding.prepare(root)
    if options.dry_run or not options.json:
        _say_all(options, plan.told, plan.warnings, done=False)
    if options.dry_run:
        return 0
    if not options.yes and not _agreed("Start it?"):
        return 2
    told = founding.found(root, who.user(), datetime.now(UTC))
    _say_all(options, told, plan.warnings if options.json else (), done=True)
    return 0


def _status(options: argparse.Namespace, root: Path) -> int:
    initiative = read_initiative(root)
    if initiative.state.reason and initiative.config.reason:
        raise Refused(f"no initiative in {root}: {initiative.config.reason}")
    if options.json:
        _say_json(telling.described(initiative))
    else:
        for line in telling.lines(initiative):
            _say(line)
    return 0


def _step(options: argparse.Namespace, root: Path) -> int:
    now = datetime.now(UTC)
    return _write(
        options, root, lambda: deciding.prepare_step(open_initiative(root), now),
        lambda: deciding.step(root, now),
    )  # fmt: skip


def _resync(options: argparse.Namespace, root: Path) -> int:
    now = datetime.now(UTC)
    return _write(
        options, root, lambda: deciding.prepare_resync(open_initiative(root), now),
        lambda: deciding.synchronise(root, now),
    )  # fmt: skip


def _approve(options: argparse.Namespace, root: Path) -> int:
    now, decision = datetime.now(UTC), _decision(options)
    return _write(
        options, root, lambda: deciding.prepare_approval(open_initiative(root), decision, now),
        lambda: deciding.approve(root, decision, now), ask="Approve it?",
    )  # fmt: skip


def _reject(options: argparse.Namespace, root: Path) -> int:
    now, decision, names = datetime.now(UTC), _decision(options), options.workstream
    return _write(
        options, root,
        lambda: deciding.prepare_rejection(open_initiative(root), decision, names, now),
        lambda: deciding.reject(root, decision, names, now), ask="Reject it?",
    )  # fmt: skip


def _trust(options: argparse.Namespace, root: Path) -> int:
    who.refuse_agents()
    hooks = read_plan(root).hooks
    for hook in hooks if not options.json else ():
        _say(f"{hook.name}: {hook.path} {trust.digest(root, hook.path)[:12] or 'is not there'}")
    found = [] if options.dry_run else trust.trust(root, tuple(hook.path for hook in hooks))
    if options.json:
        _say_json({"schema": telling.SCHEMA, "trusted": found})
    elif not options.dry_run:
        _say(f"{len(found)} of {len(hooks)} scripts may run")
    return 0


_VERBS: dict[str, Callable[[argparse.Namespace, Path], int]] = {
    "init": _init,
    "status": _status,
    "step": _step,
    "approve-barrier": _approve,
    "reject-barrier": _reject,
    "resync": _resync,
    "trust": _trust,
}


def _decision(options: argparse.Namespace) -> Decision:
    if options.dry_run:
        name = options.name or who.user()
    else:
        name = who.human(options.name, agreed=options.yes)
    return Decision(options.barrier, name, options.comment)


def _write(
    options: argparse.Namespace,
    root: Path,
    prepare: Callable[[], Prepared],
    perform: Callable[[], Done],
    ask: str = "",
) -> int:
    """Show it, ask where it is a decision, and do it."""
    if options.dry_run or (ask and not options.json):
        prepared = prepare()
        _say_all(options, prepared.told, prepared.warnings, done=False)
        if options.dry_run and not options.json:
            for write in prepared.writes:
                _say(f"  {write.verb} {write.path.relative_to(root)}")
        if options.dry_run:
            return 0
    if ask and not options.yes and not _agreed(ask):
        return 2
    done = perform()
    if options.json:
        told = {"schema": telling.SCHEMA, "done": list(done.told), "failed": list(done.failed)}
        _say_json(told | {"warnings": list(done.warnings)})
        return 1 if done.failed else 0
    for line in done.told:
        _say(line)
    for line in done.warnings:
        _say(f"warning: {line}", sys.stderr)
    for line in done.failed:
        _say(f"failed: {line}", sys.stderr)
    return 1 if done.failed else 0


def _agreed(question: str) -> bool:
    """Ask. Raises Refused where there is nobody to ask."""
    if not sys.stdin.isatty():
        raise Refused("there is nobody to ask: say --yes, or --dry-run to only look")
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say_all(
    options: argparse.Namespace, told: Sequence[str], warnings: Sequence[str], *, done: bool
) -> None:
    if options.json:
        key = "done" if done else "would"
        _say_json({"schema": telling.SCHEMA, key: list(told), "warnings": list(warnings)})
        return
    for line in told:
        _say(line)
    for line in warnings:
        _say(f"warning: {line}", sys.stderr)


def _say(text: str, stream: TextIO | None = None) -> None:
    print(clean_line(text, 10_000), file=stream or sys.stdout)


def _say_json(value: Object) -> None:
    print(json.dumps(value))


def _complain(text: str) -> None:
    _say(f"error: {clean_line(text, 2_000)}", sys.stderr)
