"""``acp governed coordinator``: what a human does with an initiative, as commands.

Exit codes: 0 done; 1 done, but something failed (a resync), or not agreed to; 2 refused.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_core.protocols.governed.commands.line import (
    as_objects,
    deciding,
    must_agree,
    say_json,
    show,
    warn_all,
)
from acp_core.protocols.governed.conduct import existing_program
from acp_core.protocols.governed.coordinator import deciding as acts
from acp_core.protocols.governed.coordinator import init, poll, status, trust
from acp_core.protocols.governed.coordinator.configuring import BARRIERS, Wish, planned, write
from acp_core.protocols.governed.coordinator.deciding import Decision, Done
from acp_core.protocols.governed.coordinator.opened import Prepared, open_initiative
from acp_core.protocols.governed.coordinator.plan import read_plan
from acp_core.protocols.governed.read.initiative import OWN, read_initiative
from acp_core.protocols.governed.schema import MULTI_CONFIG
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write import changes as shown
from acp_core.protocols.governed.write.init import agents_of
from acp_core.protocols.governed.write.journal import document
from acp_core.protocols.governed.write.opened import refuse_agents, who
from acp_core.protocols.kit.argparse_parser import sentence
from acp_core.protocols.kit.command_line import Parser, run, say


def parser() -> Parser:
    """The arguments of `acp governed coordinator`."""
    top = Parser(
        prog="acp governed coordinator",
        description="Coordinate governed runs of several repositories: shared barriers, "
        "cross-repo gates, resync.",
    )
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)

    def verb(name: str, summary: str, *aliases: str) -> Parser:
        made = verbs.add_parser(
            name, help=summary, description=sentence(summary), aliases=list(aliases)
        )
        made.add_argument("folder", nargs="?", default=".", help="the initiative (default: here)")
        made.add_argument("--json", action="store_true", help="print one JSON object")
        made.set_defaults(verb=name)
        return made

    def writing(name: str, summary: str, *aliases: str) -> Parser:
        made = verb(name, summary, *aliases)
        made.add_argument("--dry-run", action="store_true", help="only show what would change")
        return made

    def decision(name: str, summary: str, *aliases: str) -> Parser:
        made = writing(name, summary, *aliases)
        made.add_argument("--barrier", default="", help="which one (default: whose gate is open)")
        return deciding(made, comment="why")

    starting = writing("init", "Start an initiative from FOLDER/agentxchain-multi.json")
    starting.add_argument(
        "--agent", action="append", default=[], metavar="ROLE=COMMAND",
        help="the command line that takes a role's turns in every run that is started without a "
        "configuration of its own (may be repeated; default: people play all roles)",
    )  # fmt: skip
    starting.add_argument(
        "--repo", action="append", default=[], metavar="NAME=ADDRESS[#BRANCH]",
        help="a workstream's repository, to write FOLDER/agentxchain-multi.json (may be repeated)",
    )  # fmt: skip
    starting.add_argument(
        "--barrier", action="append", default=[], metavar="NAME=PHASE",
        help=f"a barrier of that configuration (may be repeated; default: {', '.join(BARRIERS)})",
    )  # fmt: skip
    starting.add_argument("--description", default="", help="what it is to reach")
    deciding(starting, comment="")
    verb("status", "Say where the initiative stands")
    writing("step", "Look at all workstreams: hold who reached a barrier, open gates")
    polling = writing("poll", "Step whenever something changed, until all is over or interrupted")
    polling.add_argument(
        "--every", type=seconds, default=poll.EVERY, metavar="SECONDS",
        help="how often to look whether something changed (default: %(default)g)",
    )  # fmt: skip
    decision("approve-barrier", "Approve a cross-repo gate; all workstreams cross", "approve")
    rejecting = decision("reject-barrier", "Reject it; workstreams go back to work", "reject")
    rejecting.add_argument(
        "--workstream", action="append", default=[], metavar="NAME",
        help="only this one goes back to work (may be repeated; default: all)",
    )  # fmt: skip
    writing("resync", "Go on after what failed was mended")
    mending = writing("mend", "Make a workstream's lost state again from its history")
    mending.add_argument("--workstream", required=True, metavar="NAME", help="whose")
    deciding(mending, comment="")
    trusting = writing("trust", "Let the scripts run that the configuration names, as they stand")
    deciding(trusting, comment="")
    return top


def verbs() -> dict[str, Parser]:
    """The parser of each verb, by its name."""
    actions = parser()._subparsers
    assert actions is not None
    choices = actions._group_actions[0].choices
    return {name: made for name, made in dict(choices or {}).items() if name in _VERBS}


def main(arguments: Sequence[str]) -> int:
    """Run a verb; returns the exit code."""

    def verb() -> int:
        options = parser().parse_args(arguments)
        root = Path(os.path.abspath(options.folder))
        words = existing_program.INITIATIVE.get(_HANDED.get(options.verb, ""))
        if words and existing_program.is_there() and read_initiative(root).layout != OWN:
            return _hand_over(options, root, words)
        return _VERBS[options.verb](options, root)

    return run(verb)


def seconds(given: str) -> float:
    number = float(given)
    if not 0.05 <= number <= 3600:
        raise ValueError
    return number


def _now() -> datetime:
    return datetime.now(UTC)


def _init(options: argparse.Namespace, root: Path) -> int:
    agents, config = agents_of(options.agent), None
    if options.repo:
        wish = Wish(options.repo, options.barrier or BARRIERS, options.description)
        config, named = planned(root, wish)
        plan = init.prepare(root, agents, named)
    elif options.barrier or options.description:
        raise Refused("--barrier and --description belong to a new configuration: name --repo")
    else:
        plan = init.prepare(root, agents)
    if options.dry_run and options.json:
        say_json("init", folder=str(root), dry_run=True, would=plan.told, warnings=plan.warnings,
                 configuration=config)  # fmt: skip
    if not options.json:
        if config is not None:
            say(f"write {root / MULTI_CONFIG}:")
            for line in document(config).decode().splitlines():
                say(line)
        for line in plan.told:
            say(line)
        warn_all(plan.warnings)
    if options.dry_run:
        return 0
    refuse_agents()
    if not must_agree(options, "Start it?"):
        say("not done")
        return 1
    by = who(options.by)
    if config is not None:
        write(root, config)
    told = init.found(root, by, _now(), agents)
    if options.json:
        say_json("init", folder=str(root), done=told, warnings=plan.warnings)
        return 0
    for line in told:
        say(line)
    return 0


def _status(options: argparse.Namespace, root: Path) -> int:
    initiative = read_initiative(root)
    if initiative.config.missing and initiative.state.missing:
        raise Refused(f"no initiative in {root}: write agentxchain-multi.json first")
    if options.json:
        say_json("status", **status.described(initiative))
        return 0
    for line in status.lines(initiative):
        say(line)
    return 0


def _step(options: argparse.Namespace, root: Path) -> int:
    now = _now()
    return _write(
        options, root, lambda: acts.prepare_step(open_initiative(root), now),
        lambda: acts.step(root, now),
    )  # fmt: skip


def _poll(options: argparse.Namespace, root: Path) -> int:
    if options.dry_run:
        return _show(options, root, acts.prepare_step(open_initiative(root), _now()))
    for done in poll.poll(root, every=options.every):
        if options.json:
            say_json("poll", done=done.told, failed=done.failed, warnings=done.warnings)
            sys.stdout.flush()
            continue
        for line in done.told:
            say(line)
        sys.stdout.flush()
        warn_all([*done.warnings, *(f"failed: {told}" for told in done.failed)])
    return 0


def _mend(options: argparse.Namespace, root: Path) -> int:
    from acp_core.protocols.governed.coordinator.repair import prepare_mending

    now, by, name = _now(), who(options.by), options.workstream
    return _write(
        options, root, lambda: prepare_mending(open_initiative(root), name, by, now),
        lambda: acts.mend(root, name, by, now), "Make it again?",
    )  # fmt: skip


def _resync(options: argparse.Namespace, root: Path) -> int:
    now = _now()
    if not options.dry_run:
        refuse_agents()
    return _write(
        options, root, lambda: acts.prepare_resync(open_initiative(root), now),
        lambda: acts.synchronise(root, now),
    )  # fmt: skip


def _approve(options: argparse.Namespace, root: Path) -> int:
    now, decision = _now(), Decision(options.barrier, who(options.by), options.comment)
    return _write(
        options, root, lambda: acts.prepare_approval(open_initiative(root), decision, now),
        lambda: acts.approve(root, decision, now), "Approve it?",
    )  # fmt: skip


def _reject(options: argparse.Namespace, root: Path) -> int:
    now, decision = _now(), Decision(options.barrier, who(options.by), options.comment)
    names = options.workstream
    return _write(
        options, root,
        lambda: acts.prepare_rejection(open_initiative(root), decision, names, now),
        lambda: acts.reject(root, decision, names, now), "Reject it?",
    )  # fmt: skip


def _trust(options: argparse.Namespace, root: Path) -> int:
    refuse_agents()
    hooks = read_plan(root).hooks
    scripts = {hook.path: trust.digest(root, hook.path) for hook in hooks}
    if not options.json:
        for hook in hooks:
            say(f"{hook.name}: {hook.path} {scripts[hook.path][:12] or 'is not there'}")
    if options.dry_run or not scripts:
        if options.json:
            say_json("trust", folder=str(root), dry_run=options.dry_run, scripts=scripts)
        elif not scripts:
            say("the configuration names no script")
        return 0
    if not must_agree(options, "Let them run, as they stand?"):
        say("not allowed")
        return 1
    found = trust.trust(root, tuple(scripts))
    if options.json:
        say_json("trust", folder=str(root), scripts=scripts, trusted=found)
    else:
        say(f"{len(found)} of {len(scripts)} scripts may run")
    return 0


_HANDED = {"approve-barrier": "approve_gate", "step": "coordinate", "resync": "resync"}
"""Verbs that the existing program does in initiatives of its own layout."""


def _hand_over(options: argparse.Namespace, root: Path, words: Sequence[str]) -> int:
    refuse_agents()
    command = [existing_program.NAME, *words]
    if options.dry_run:
        if options.json:
            say_json(options.verb, folder=str(root), dry_run=True, runs=command)
        else:
            say(f"runs: {shlex.join(command)}")
        return 0
    if options.verb == "approve-barrier" and not must_agree(options, "Approve it?"):
        say("not done")
        return 1
    ran = existing_program.hand_over(root, words)
    if not ran.ok:
        raise Refused(f"{existing_program.NAME}: {ran.said}")
    if options.json:
        say_json(options.verb, folder=str(root), ran=command, said=ran.said)
    else:
        say(f"{existing_program.NAME}: {ran.said}")
    return 0


_VERBS: dict[str, Callable[[argparse.Namespace, Path], int]] = {
    "init": _init,
    "status": _status,
    "step": _step,
    "poll": _poll,
    "approve-barrier": _approve,
    "reject-barrier": _reject,
    "resync": _resync,
    "mend": _mend,
    "trust": _trust,
}


def _write(
    options: argparse.Namespace,
    root: Path,
    prepare: Callable[[], Prepared],
    perform: Callable[[], Done],
    ask: str = "",
) -> int:
    """Show it, ask where it is a decision, and do it."""
    if options.dry_run or ask:
        prepared = prepare()
        if options.dry_run:
            return _show(options, root, prepared)
        refuse_agents()
        if not options.json:
            warn_all(prepared.warnings)
            for line in prepared.preview:
                say(line)
        if not must_agree(options, ask):
            say("not done")
            return 1
    done = perform()
    if options.json:
        say_json(
            options.verb, folder=str(root), done=done.told, failed=done.failed,
            warnings=done.warnings, **_standing(root),
        )  # fmt: skip
        return 1 if done.failed else 0
    for line in done.told:
        say(line)
    warn_all([told for told in done.warnings if not ask or told not in prepared.warnings])
    warn_all([f"failed: {told}" for told in done.failed])
    return 1 if done.failed else 0


def _show(options: argparse.Namespace, root: Path, prepared: Prepared) -> int:
    changes = shown.of_writes(root, prepared.writes)
    if options.json:
        say_json(
            options.verb, folder=str(root), dry_run=True, would=prepared.preview,
            warnings=prepared.warnings, changes=as_objects(changes),
        )  # fmt: skip
        return 0
    for line in prepared.preview:
        say(line)
    warn_all(prepared.warnings)
    show(changes)
    return 0


def _standing(root: Path) -> dict[str, object]:
    state = read_initiative(root).state.value
    return {key: state.get(key) for key in ("status", "barriers", "workstreams")}
