"""Bringing a run of an earlier version to this one, without breaking what is under way.

Source: governed protocol specification, "Compatibility". What bears a schema version keeps it, and
no append-only log is rewritten.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acp_core.files.transaction import APPEND, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.rules.config import unlawful_bindings
from acp_core.protocols.governed.schema import Object, obj, text
from acp_core.protocols.governed.state import format_time, ledger_line
from acp_core.protocols.governed.write.journal import document, line
from acp_core.protocols.governed.write.opened import Opened, locked, refuse_agents, write


def migrate(root: str | Path, by: str, now: datetime) -> tuple[str, ...]:
    """Migrate a run; returns what was done.

    Raises:
        Refused: there is nothing to migrate, or it is of a form that cannot be. Nothing was
            written.
    """
    refuse_agents()
    with locked(root, schema.MIGRATE) as opened:
        done, wanted = plan(opened, by, now)
        write(opened, "migrate", wanted)
        return done


def plan(opened: Opened, by: str, now: datetime) -> tuple[tuple[str, ...], Sequence[Write]]:
    """What migrating does and writes. Writes nothing. Raises as `migrate`."""
    if opened.config.get("version") == 3 or "agents" in opened.config:
        raise Refused("this run has the version 3 format: convert it with `agentxchain migrate`")
    config, state = copy.deepcopy(opened.config), copy.deepcopy(opened.state)
    done = []
    if "schema_version" not in config:
        config = {"schema_version": "1.0", **config}
        done.append(f"{schema.CONFIG}: schema_version 1.0")
    rules = obj(config, "rules")
    if "mandatory_objections" not in rules:
        config["rules"] = {**rules, "mandatory_objections": True}
        done.append(f"{schema.CONFIG}: every role must raise an objection")
    done += _opened_elsewhere(config)
    if state:
        done += _state(state)
    if not done:
        raise Refused("nothing to migrate")
    record = ledger_line(state, "migrated", format_time(now), by=by, changes=done)
    return tuple(done), [
        Write(opened.root / schema.LEDGER, APPEND, line(record)),
        *_changed(opened.root / schema.CONFIG, opened.config, config),
        *_changed(opened.root / schema.STATE, opened.state, state),
    ]


def _opened_elsewhere(config: Object) -> list[str]:
    """Mend what earlier versions of acp wrote and the existing program does not open."""
    done = []
    for name in unlawful_bindings(config):
        config["roles"][name]["write_authority"] = schema.AUTHORITATIVE
        done.append(f"{schema.CONFIG}: {name}, which a local program plays, is authoritative")
    project = obj(config, "project")
    if "goal" in project and not text(project, "goal"):
        del project["goal"]
        done.append(f"{schema.CONFIG}: no empty goal")
    return done


def _state(state: Object) -> list[str]:
    done = []
    if "schema_version" not in state:
        version = "1.0" if "current_turn" in state else "1.1"
        state["schema_version"] = version
        done.append(f"{schema.STATE}: schema_version {version}")
    if "super_run_id" not in state:
        state["super_run_id"] = None
        done.append(f"{schema.STATE}: may be linked to an initiative")
    return done


def _changed(path: Path, before: Object, after: Object) -> list[Write]:
    return [Write(path, REPLACE, document(after))] if before != after else []
