"""``acp workspaces triage`` and ``conflicts``."""

from __future__ import annotations

import argparse
from typing import Any

from acp_core.model.clock import utc_now
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.command_line import common, say_step, show, told
from acp_core.protocols.workspaces.conduct.follow import note
from acp_core.protocols.workspaces.read.conflict_hints import CATEGORIES
from acp_core.protocols.workspaces.write import Refused, conflicts, dispatch, triage
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, layout
from acp_core.protocols.workspaces.write.writing import Step


def add(verbs: Any) -> None:
    """Add the commands."""
    made = verbs.add_parser(
        "triage",
        help="decide on what did not simply succeed; without a decision: what is to be decided",
        description="Decide on an agent: a partial can be accepted, run once more or skipped; a "
        "failure or a missing result can be run once more, done by the orchestrator, or be a gap. "
        "`dispatch` starts whoever is run once more.",
    )
    common(made)
    made.add_argument("agent", nargs="?", help="the agent")
    words = sorted({word for each in schema.DECISIONS.values() for word in each})
    made.add_argument("decision", nargs="?", choices=words, help="what becomes of it")
    made.add_argument("--reason", default="", help="why")
    made.add_argument("--by", default="", help="who decides (you)")
    made.set_defaults(perform=_triage)
    made = verbs.add_parser(
        "conflicts",
        help="find, add, resolve and dismiss conflicts between outputs; alone: list them",
        description="Without an option: the conflicts that are written down, and what a machine "
        "finds now. --find writes that down; each is then resolved by the rule of its category, or "
        "dismissed.",
    )
    # argparse does not break a line within such a group
    made.usage = (
        "%(prog)s [-h] [--json] [--dry-run] [OPTION]...\n"
        "           [--find | --add TOPIC | --resolve ID | --dismiss ID] [folder]"
    )
    common(made)
    one = made.add_mutually_exclusive_group()
    one.add_argument("--find", action="store_true", help="look for conflicts, and write them down")
    one.add_argument("--add", metavar="TOPIC", help="add one on this topic")
    one.add_argument("--resolve", metavar="ID", help="resolve one by the rule of its category")
    one.add_argument("--dismiss", metavar="ID", help="it is none")
    made.add_argument("--between", default="", metavar="A,B", help="with --add: the two agents")
    kinds, grounds = "|".join(CATEGORIES), "|".join(conflicts.GROUNDS)
    made.add_argument("--category", default="", choices=("", *CATEGORIES), metavar=kinds,
                      help="of which kind it is")  # fmt: skip
    made.add_argument("--keep", default="", metavar="AGENT", help="whose version holds")
    made.add_argument("--because", default="", choices=("", *conflicts.GROUNDS), metavar=grounds,
                      help="why: it is the more ... one")  # fmt: skip
    made.add_argument("--alike", action="store_true", help="the same for the others on its topic; "
                      "with --keep for those in which that agent has a part")  # fmt: skip
    made.add_argument("--reason", default="", help="with --dismiss: why")
    made.add_argument("--by", default="", help="who decides (you)")
    made.set_defaults(perform=_conflicts)


def _triage(options: argparse.Namespace) -> int:
    place = layout(options.folder)
    if options.agent is None:
        return _undecided(options, place)
    if options.decision is None:
        raise Refused(f"say what becomes of {options.agent}: `acp workspaces triage --help`")
    words = (options.agent, options.decision, options.reason, options.by)
    step = triage.plan(place, *words) if options.dry_run else triage.decide(place, *words)
    return done("triage", options, step)


def _undecided(options: argparse.Namespace, place: Layout) -> int:
    run = dispatch.look(place, utc_now())
    rows = [
        {
            "agent": agent.name,
            "ended": state.ending(agent, run) or "not through",
            "decision": agent.decision,
            "choices": list(state.choices(agent, run)),
            "note": note(run, agent.name),
        }
        for agent in run.agents
        if state.undecided(agent, run) or agent.decision
    ]
    left = [agent.name for agent in run.agents if state.undecided(agent, run)]
    if options.json:
        say_step("triage", agents=rows, undecided=left)
    for row in rows if not options.json else []:
        what = row["decision"] or f"decide: {', '.join(row['choices'])}"
        why = f" ({row['note']})" if row["note"] else ""
        say(f"{row['agent']}: {row['ended']}: {what}{why}")
    if not rows and not options.json:
        say("nothing is to be decided")
    return 1 if left else 0


def _conflicts(options: argparse.Namespace) -> int:
    place = layout(options.folder)

    def step() -> Step:
        if options.find:
            return conflicts.look(place, options.by)
        if options.add is not None:
            pair = [each.strip() for each in options.between.split(",") if each.strip()]
            if len(pair) != 2 or not options.category:
                raise Refused("--add needs --between A,B and --category")
            return conflicts.add(place, pair, options.add, options.category, options.by)
        if options.resolve is not None:
            return conflicts.resolve(
                place,
                options.resolve,
                category=options.category,
                keep=options.keep,
                because=options.because,
                by=options.by,
                alike=options.alike,
            )
        reason, alike = options.reason, options.alike
        return conflicts.dismiss(place, options.dismiss, reason, options.by, alike=alike)

    if not options.find and options.add is options.resolve is options.dismiss is None:
        return _list(options, place)
    made = step() if options.dry_run else manifests.act(place, step)
    return done("conflicts", options, made)


def _list(options: argparse.Namespace, place: Layout) -> int:
    recorded = conflicts.recorded(place)
    known = {
        (frozenset(schema.words(c.get("agents"))), schema.text(c.get("topic")).lower())
        for c in recorded
    }
    new = [h for h in conflicts.found(place) if (frozenset(h.agents), h.topic.lower()) not in known]
    waiting = [c for c in recorded if not c.get("sentence") and not c.get("dismissed")]
    if options.json:
        say_step("conflicts", conflicts=recorded, hints=[h._asdict() for h in new])
        return 1 if waiting or new else 0
    for each in recorded:
        pair = " and ".join(schema.words(each.get("agents")))
        how = each.get("sentence") or ("dismissed" if each.get("dismissed") else "open")
        why = f" [{each['why']}]" if isinstance(each.get("why"), str) and how == "open" else ""
        say(f"{each.get('id')}  {pair} on {each.get('topic')} ({each.get('category')}){why}: {how}")
    for hint in new:
        pair = " and ".join(hint.agents)
        say(f"not written down: {pair} on {hint.topic} ({hint.category}) [{hint.why}]")
    if not recorded and not new:
        say("no conflict is known")
    return 1 if waiting or new else 0


def done(verb: str, options: argparse.Namespace, step: Step) -> int:
    """Say what was done, or would be."""
    if options.json:
        say_step(verb, done=not options.dry_run, **told(step))
    else:
        show(step, dry=options.dry_run)
    return 0
