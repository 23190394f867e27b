"""Sharing a collaboration, joining one, and ending that: as a form and as a command do it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime

from acp_core.files.text import clean_line
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.folder.actions import table_share
from acp_core.protocols.folder.write import Refused, shared_leases, synchronizing
from acp_core.protocols.folder.write import sharing as shares
from acp_core.protocols.folder.write.opened import is_shared
from acp_core.protocols.folder.write.sharing import Leaving
from acp_core.protocols.folder.write.synchronizing import Synced
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.confirmation import confirmed
from acp_core.protocols.kit.printing import say_object, show
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.stores import base as manifests
from acp_core.stores.opening import open_engine

_SCHEMA = "acp.share/1"


def sharing(context: Context, now: datetime) -> Action:
    """Share a collaboration: asked for by name."""
    folder = context.key

    def perform(values: Values) -> Outcome:
        return Outcome(
            OutcomeState.DONE, _shared_sentence(shares.share(folder, values.url, values.id))
        )

    return bound(
        table_share.SHARING,
        context,
        lambda values: _preview(shares.leaving(folder, values.url, values.id)),
        perform,
        offered=False,  # asked for by name: it is about other machines, not about what is next
    )


def syncing(context: Context, now: datetime) -> Action:
    """Look at the store once."""
    folder = context.key

    def perform(values: Values) -> Outcome:
        lines = _once(folder, values)
        return Outcome(OutcomeState.DONE, safe(" ".join(lines)))

    return bound(
        table_share.SYNCING,
        context,
        lambda values: Preview("Bring what is new in the store; publish documents that may leave."),
        perform,
        offered=is_shared(folder),
    )


def unsharing(context: Context, now: datetime) -> Action:
    """End the sharing of a folder that is shared."""
    folder = context.key

    def perform(values: Values) -> Outcome:
        said = shares.unshare(folder)
        return Outcome(
            OutcomeState.DONE, safe(" ".join(["The folder is no longer shared.", *said]))
        )

    return bound(
        table_share.UNSHARING,
        context,
        lambda values: _ending(folder),
        perform,
        offered=is_shared(folder),
    )


def share(values: Values) -> int:
    """``acp share``; the exit code."""
    plan = shares.leaving(values.folder, values.url, values.id)
    preview = _preview(plan)
    if values.dry_run:
        return show(_SCHEMA, "share", preview, as_json=values.json)
    if not confirmed(preview, values):
        say("not done")
        return 1
    done = shares.share(values.folder, values.url, values.id)
    if values.json:
        say_object(_SCHEMA, "share", collaboration=os.path.abspath(values.folder), address=done.address.text,
                   files=sorted(done.files))  # fmt: skip
    else:
        say(_shared_sentence(done))
    return 0


def join(values: Values) -> int:
    """``acp join``; the exit code."""
    done = shares.join(values.url, values.folder)
    for note in done.notes:
        warn(note)
    address = manifests.pinned_address(values.folder)
    if values.json:
        say_object(_SCHEMA, "join", collaboration=os.path.abspath(values.folder), address=address.text,
                   seq=done.base.tip.seq, notes=list(done.notes))  # fmt: skip
    else:
        say(f"joined {safe(address.text)} in {safe(values.folder)}: seq {done.base.tip.seq}")
    return 0


def sync(values: Values) -> int:
    """``acp sync``; the exit code."""
    asked = any((values.mine, values.theirs, values.delete, values.release))
    if values.dry_run:
        preview = Preview("Bring what is new in the store; publish documents that may leave.")
        return show(_SCHEMA, "sync", preview, as_json=values.json)
    if values.once or asked:
        lines = _once(values.folder, values)
        if values.json:
            say_object(
                _SCHEMA, "sync", collaboration=os.path.abspath(values.folder), notes=list(lines)
            )
        else:
            for line in lines:
                say(line)
        return 0
    from acp_core.protocols.folder.conduct import syncing as process

    return process.run(values.folder, as_json=values.json)


def unshare(values: Values) -> int:
    """``acp unshare``; the exit code."""
    preview = _ending(values.folder)
    if values.dry_run:
        return show(_SCHEMA, "unshare", preview, as_json=values.json)
    if not confirmed(preview, values):
        say("not done")
        return 1
    said = shares.unshare(values.folder)
    for each in said:
        warn(each)
    if values.json:
        say_object(
            _SCHEMA, "unshare", collaboration=os.path.abspath(values.folder), notes=list(said)
        )
    else:
        say("The folder is no longer shared.")
    return 0


def _once(folder: str, values: Values) -> Sequence[str]:
    """Settle what is asked for, and look at the store once; sentences about it."""
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared; `acp share {folder} URL` shares it")
    lines = []
    if values.mine:
        lines.append(synchronizing.settle(folder, values.mine, mine=True))
    if values.theirs:
        lines.append(synchronizing.settle(folder, values.theirs, mine=False))
    with open_engine(manifests.pinned_address(folder)) as engine:
        if values.delete:
            synchronizing.delete(folder, engine, values.delete)
            lines.append(f"{values.delete} is deleted")
        if values.release:
            back = shared_leases.release(folder, engine, (values.release,))
            lines.append(
                f"{values.release} can act elsewhere"
                if back
                else f"{values.release} does not act here"
            )
        return [*lines, *sentences(synchronizing.sync(folder, engine))]


def sentences(synced: Synced) -> Sequence[str]:
    """What one look at the store did."""
    came, left = (
        ", ".join(map(clean_line, dict.fromkeys(each))) for each in (synced.came, synced.left)
    )
    tip = synced.done.base.tip
    lines = [*synced.notes]
    if came:
        lines.append(f"from the store: {came}")
    if left:
        lines.append(f"published: {left}")
    return [*lines, f"up to date with the store: seq {tip.seq}"]


def _shared_sentence(plan: Leaving) -> str:
    return safe(f"Shared. Others join with: acp join {plan.address.text} FOLDER")


def _preview(plan: Leaving) -> Preview:
    """What leaves and what stays."""
    names = [*sorted(plan.files), "events.jsonl", "protocol.json"]
    notes = [f"leaves this machine: {', '.join(map(clean_line, names))}"]
    if plan.staying:
        notes.append(f"stays here: {', '.join(map(clean_line, plan.staying[:20]))}")
    if len(plan.opened.entries) > shares.MOST_EVENTS:
        notes.append(
            f"more than {shares.MOST_EVENTS} events: `acp continue` makes a smaller collaboration"
        )
    notes.append(
        "a script that appends to events.jsonl without acp promises nothing to the others: use `acp append`"
    )
    return Preview(
        safe(f"Share this collaboration at {plan.address.text}."),
        changes=(Change(manifests.SHARE, "create"),),
        notes=tuple(map(safe, notes)),
    )


def _ending(folder: str) -> Preview:
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared")
    return Preview("End the sharing of this folder; it stays as it is, and so does the store.")
