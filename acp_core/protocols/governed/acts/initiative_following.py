"""Commands of an initiative that say more than one act: `poll`, and `trust-hooks`.

A poll goes on until the initiative is over or somebody interrupts it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from acp_core.protocols.governed.acts import table_initiative
from acp_core.protocols.governed.acts.common import facts
from acp_core.protocols.governed.acts.table import SCHEMA
from acp_core.protocols.governed.read.initiative import read_plan
from acp_core.protocols.governed.write import initiative_poll, initiative_trust
from acp_core.protocols.governed.write.initiative_decide import Done
from acp_core.protocols.governed.write.opened import refuse_agents
from acp_core.protocols.kit.command import perform
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values


def poll(values: Values) -> int:
    """Step whenever something changed; the exit code."""
    if values.dry_run:
        spec = table_initiative.COORDINATION._replace(command=table_initiative.POLLING.command)
        return perform(SCHEMA, "poll", spec, values)
    root = Path(os.path.abspath(values.folder))
    for done in initiative_poll.poll(root, every=values.every or initiative_poll.EVERY):
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
    scripts = {hook.path: initiative_trust.digest(root, hook.path) for hook in hooks}
    if not values.json:
        for hook in hooks:
            say(f"{hook.name}: {hook.path} {scripts[hook.path][:12] or 'is not there'}")
    if scripts:
        return perform(SCHEMA, "trust-hooks", table_initiative.TRUST_HOOKS, values)
    if values.json:
        outcome = facts(
            table_initiative.TRUST_HOOKS, str(root), dry_run=values.dry_run, scripts=scripts
        )
        say_object(SCHEMA, "trust-hooks", done=False, **outcome)
    else:
        say("the configuration names no scripts")
    return 0
