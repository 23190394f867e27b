"""Commands of an initiative that say more than one act: `poll`, and `trust-hooks`.

A poll goes on until the initiative is over or somebody interrupts it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from acp_core.protocols.governed.actions import table_initiative as table
from acp_core.protocols.governed.actions.common import facts
from acp_core.protocols.governed.actions.table import SCHEMA
from acp_core.protocols.governed.coordinator import poll as polling
from acp_core.protocols.governed.coordinator import trust
from acp_core.protocols.governed.coordinator.deciding import Done
from acp_core.protocols.governed.coordinator.plan import read_plan
from acp_core.protocols.governed.write.opened import refuse_agents
from acp_core.protocols.kit.command import perform
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values


def poll(values: Values) -> int:
    """Step whenever something changed; the exit code."""
    if values.dry_run:
        spec = table.COORDINATION._replace(command=table.POLLING.command)
        return perform(SCHEMA, "poll", spec, values)
    root = Path(os.path.abspath(values.folder))
    for done in polling.poll(root, every=values.every or polling.EVERY):
        _say(done, as_json=values.json)
        sys.stdout.flush()
    return 0


def _say(done: Done, *, as_json: bool) -> None:
    if as_json:
        say_object(SCHEMA, "poll", verb="poll", done=True, steps=done.messages, failed=done.failed,
                   warnings=done.warnings)  # fmt: skip
        return
    for line in done.messages:
        say(line)
    for each in (*done.warnings, *(f"failed: {outcome}" for outcome in done.failed)):
        warn(each)


def trust_hooks(values: Values) -> int:
    """Show the scripts, ask, and let them run; the exit code."""
    refuse_agents()
    root = Path(os.path.abspath(values.folder))
    hooks = read_plan(root).hooks
    scripts = {hook.path: trust.digest(root, hook.path) for hook in hooks}
    if not values.json:
        for hook in hooks:
            say(f"{hook.name}: {hook.path} {scripts[hook.path][:12] or 'is not there'}")
    if scripts:
        return perform(SCHEMA, "trust-hooks", table.TRUST_HOOKS, values)
    if values.json:
        outcome = facts(table.TRUST_HOOKS, str(root), dry_run=values.dry_run, scripts=scripts)
        say_object(SCHEMA, "trust-hooks", done=False, **outcome)
    else:
        say("the configuration names no scripts")
    return 0
