"""Hooks and services allowed, and a run of an earlier version brought to this one."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action, Change, Outcome, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.governed.acts import table_deciding
from acp_core.protocols.governed.acts.common import (
    Done,
    Planned,
    Steps,
    done,
    facts,
    of_run,
    open_run,
)
from acp_core.protocols.governed.acts.table import SCHEMA
from acp_core.protocols.governed.read import trust
from acp_core.protocols.governed.write import migrate
from acp_core.protocols.governed.write import trusting as write_trusting
from acp_core.protocols.governed.write.opened import Opened, read_unlocked, refuse_agents, who
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command import perform as perform_act
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def trusting(context: Context, now: datetime) -> Action:
    """Allow the hooks and services that the configuration names."""
    opened = open_run(context)
    spec, root = table_deciding.TRUSTING, opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        asked = trust.asked(read_unlocked(root).config)
        data = facts(spec, opened.key, asked=asked, trusted=trust.is_trusted(root), dry_run=True)
        changes = tuple(Change(safe(each), "start") for each in asked)
        return Preview("Allow these in their present form.", changes, data=data)

    def perform(values: Values) -> Outcome:
        refuse_agents()
        asked = write_trusting.trust(root)
        said = "Allowed, until one of them changes."
        return done(spec, opened.key, said, asked=asked, trusted=True)

    return bound(spec, opened, preview, perform, offered=False)


def run_trust(values: Values) -> int:
    """The command: what is to be allowed is shown, and asked where something is."""
    refuse_agents()
    opened = read_unlocked(values.folder)
    asked, trusted = trust.asked(opened.config), trust.is_trusted(opened.root)
    if not values.json:
        for each in asked:
            say(each)
    if asked and (values.dry_run or not trusted):
        return perform_act(SCHEMA, "trust", table_deciding.TRUSTING, values)
    if values.json:
        outcome = facts(table_deciding.TRUSTING, opened.key, asked=asked, trusted=trusted)
        say_object(SCHEMA, "trust", **outcome, dry_run=values.dry_run)
    elif asked:
        say("already allowed")
    else:
        say("the configuration names no hooks or services that need permission")
    return 0


def migration(context: Context, now: datetime) -> Action:
    """Migrate a run of an earlier version to this version."""
    opened = open_run(context)

    def plan(fresh: Opened, values: Values) -> Planned:
        return None, migrate.plan(fresh, who(values.by), utc_now())[1]

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        return f"Migrate: {'; '.join(migrate.plan(fresh, who(values.by), utc_now())[0])}.", ()

    def perform(values: Values) -> Done:
        steps = migrate.migrate(opened.root, who(values.by), utc_now())
        return Done(f"Migrated: {'; '.join(steps)}.", data={"steps": steps})

    return of_run(
        table_deciding.MIGRATION, opened, Steps(plan, describe, perform), offered=False
    )  # fmt: skip
