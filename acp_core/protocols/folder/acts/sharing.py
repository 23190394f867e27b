"""Sharing a collaboration, joining one, asking its hosts, and ending that: as a form and as a command do it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.folder.acts import table
from acp_core.protocols.folder.acts.table import ASKING
from acp_core.protocols.folder.conduct import asked
from acp_core.protocols.folder.conduct import syncing as conduct_syncing
from acp_core.protocols.folder.conduct.syncing import Leaving as Mirroring
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import is_shared
from acp_core.protocols.folder.write import shared
from acp_core.protocols.folder.write import sharing as shares
from acp_core.protocols.folder.write import sharing as write_sharing
from acp_core.protocols.folder.write.opened import open_unlocked, read_protocol
from acp_core.protocols.folder.write.shared import Synced
from acp_core.protocols.folder.write.sharing import (
    _SHOWN_ANSWER,
    Leaving,
    Wanted,
    answer_of,
    is_reader,
    request_sentence,
)
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command import note
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import confirmed, say_object, show
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.stores import address as stores_address
from acp_core.stores import asking, git, hosts
from acp_core.stores import base as manifests
from acp_core.stores.address import Address
from acp_core.stores.engine import Asked
from acp_core.stores.hosts import open_engine

_SCHEMA = "acp.share/1"


def sharing(context: Context, now: datetime) -> Action:
    """Share a collaboration: asked for by name."""
    folder = context.key

    def perform(values: Values) -> Outcome:
        return Outcome(OutcomeState.DONE, _share(folder, values)[0])

    return bound(
        table.SHARING,
        context,
        lambda values: _plan(folder, values),
        perform,
        offered=False,  # asked for by name: it is about other machines, not about what is next
    )


def syncing(context: Context, now: datetime) -> Action:
    """Look at the store once."""
    folder = context.key

    def perform(values: Values) -> Outcome:
        done = _once(folder, values)
        state = OutcomeState.REFUSED if done.failed else OutcomeState.DONE
        return Outcome(state, safe("; ".join(done.lines)))

    return bound(
        table.SYNCING,
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
        table.UNSHARING,
        context,
        lambda values: _ending(folder),
        perform,
        offered=is_shared(folder),
    )


def share(values: Values) -> int:
    """``acp share``; the exit code."""
    preview = _plan(values.folder, values)
    if values.dry_run:
        return show(_SCHEMA, "share", preview, as_json=values.json)
    if not confirmed(preview, values):
        say("not done")
        return 1
    sentence, done = _share(values.folder, values)
    if values.json:
        address = {"address": done.address.text, "files": sorted(done.files)} if done else {}
        say_object(_SCHEMA, "share", collaboration=os.path.abspath(values.folder), **address)
    else:
        say(sentence)
    return 0


def _plan(folder: str, values: Values) -> Preview:
    """What sharing a folder would do, in a store and on this machine.

    Raises:
        Refused: it cannot be shared so.
    """
    if values.exclusive and values.group:
        raise Refused("--exclusive is for a folder of one account: leave out --group")
    if values.exclusive:
        shares.refuse_group(folder)
    notes = []
    if values.group:
        shares.group_number(values.group)
        notes.append(
            f"the accounts of the group {values.group} on this machine can write in the folder"
        )
    if values.exclusive:
        notes.append("scripts that append without acp fail before they write (not as root)")
    if not values.url:
        if not notes:
            raise Refused(
                "name the store: a git repository by ssh, https or path, or a PostgreSQL database"
            )
        if values.exclusive and not is_shared(folder):
            raise Refused(f"{folder} is not shared; `acp share {folder} URL --exclusive` shares it")
        open_unlocked(folder)
        return Preview("Change who can write in this folder.", notes=tuple(map(safe, notes)))
    if conduct_syncing.kind_of(folder):
        if values.group or values.exclusive:
            raise Refused("--group and --exclusive are for folder collaborations")
        return _mirror_preview(conduct_syncing.plan(folder, values.url, values.id))
    preview = _preview(shares.leaving(folder, values.url, values.id))
    return replace(preview, notes=(*preview.notes, *map(safe, notes)))


def _share(folder: str, values: Values) -> tuple[str, Leaving | None]:
    """Share a folder, as `_plan` says; a sentence on it, and what left."""
    _plan(folder, values)
    said = []
    if values.url and conduct_syncing.kind_of(folder):
        return conduct_syncing.begin(folder, values.url, values.id), None
    if values.group:
        shares.open_to(folder, values.group)
        said.append(f"The group {values.group} can write in the folder.")
    done = shares.share(folder, values.url, values.id) if values.url else None
    if values.exclusive:
        shares.protect(folder)
        said.append("Only acp can append now.")
    if done:
        said.append(safe(f"Shared. Others join with: acp join {done.address.typed} FOLDER"))
        said.append(git.advice_on_branches(done.address))
    return safe(" ".join(filter(None, said))), done


def join(values: Values) -> int:
    """``acp join``; the exit code."""
    done = shares.join(values.url, values.folder)
    for warning in done.notes:
        warn(warning)
    address = stores_address.pinned_address(values.folder)
    if values.json:
        say_object(_SCHEMA, "join", collaboration=os.path.abspath(values.folder), address=address.text,
                   seq=done.base.tip.seq, notes=list(done.notes))  # fmt: skip
    else:
        state = "a mirror" if is_reader(values.folder) else f"seq {done.base.tip.seq}"
        say(f"joined {safe(address.text)} in {safe(values.folder)}: {state}")
        if not hosts.accepted():
            verbs = ", ".join(f'"{each}"' for each in asking.VERBS)
            say(
                f"{hosts.this_host()} refuses requests from other hosts; to allow some, write into config.toml:"
            )
            say("[share]")
            say(f"accept = [{verbs}]")
    return 0


def sync(values: Values) -> int:
    """``acp sync``; the exit code."""
    if values.dry_run:
        preview = Preview("Bring what is new in the store; publish documents that may leave.")
        return show(_SCHEMA, "sync", preview, as_json=values.json)
    if values.once or _asks_for_more(values):
        done = _once(values.folder, values)
        if values.json:
            say_object(_SCHEMA, "sync", collaboration=os.path.abspath(values.folder), notes=list(done.lines),
                       done=not done.failed)  # fmt: skip
        else:
            for line in done.lines:
                say(line)
        return 2 if done.failed else 0
    make = conduct_syncing.process_for
    return conduct_syncing.run(values.folder, as_json=values.json, make=make)


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


class Once(NamedTuple):
    """One look at the store: sentences about it, and whether something that was asked for failed."""

    lines: tuple[str, ...]
    failed: bool = False


def _once(folder: str, values: Values) -> Once:
    """Settle what is asked for, and look at the store once."""
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared; `acp share {folder} URL` shares it")
    if conduct_syncing.is_mirror(folder):
        if _asks_for_more(values):
            raise Refused("a mirror is only looked at: leave out the other options")
        return Once(conduct_syncing.sync_once(folder))
    lines = []
    failed = False
    if values.mine:
        lines.append(shared.settle(folder, values.mine, mine=True))
    if values.theirs:
        lines.append(shared.settle(folder, values.theirs, mine=False))
    if values.merge:
        lines.append(shared.merge(folder, values.merge))
    if values.again:
        done = shared.again(folder)
        lines += done.lines
        failed = done.refused
    with open_engine(stores_address.pinned_address(folder)) as engine:
        if values.delete:
            shared.delete(folder, engine, values.delete)
            lines.append(f"{values.delete} is deleted")
        if values.release:
            back = shared.release(folder, engine, (values.release,))
            lines.append(
                f"{values.release} can act elsewhere"
                if back
                else f"{values.release} does not act here"
            )
        if values.take:
            _must_take_part(folder, values.take)
            shared.take_lease(folder, engine, values.take, "sync", take=True)
            lines.append(f"{values.take} acts here")
        return Once((*lines, *sentences(shared.sync(folder, engine))), failed)


def _asks_for_more(values: Values) -> bool:
    """Whether more is asked for than a look: about documents or participants."""
    return any((values.mine, values.theirs, values.merge, values.again, values.delete, values.release,
                values.take))  # fmt: skip


def _must_take_part(folder: str, participant: str) -> None:
    if participant not in records.participant_ids(read_protocol(folder)):
        raise Refused(f"participant {participant!r} is not listed in protocol.json")


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


def _preview(plan: Leaving) -> Preview:
    """What of a folder collaboration leaves and what stays."""
    notes = []
    if len(plan.opened.entries) > shares.MOST_EVENTS:
        notes.append(
            f"more than {shares.MOST_EVENTS} events: `acp continue` makes a smaller collaboration"
        )
    notes.append(
        "a script that appends to events.jsonl without acp promises nothing to the others: use `acp append`"
    )
    names = [*sorted(plan.files), "events.jsonl", "protocol.json"]
    return _leaving("this collaboration", plan.address, names, plan.staying, notes)


def _mirror_preview(plan: Mirroring) -> Preview:
    """What of a collaboration of another protocol leaves and what stays."""
    names = [each.name for each in plan.contents.files]
    note = "the others see a read-only mirror; what they do there is a request to this machine"
    staying = plan.contents.staying
    return _leaving("a mirror of this collaboration", plan.address, names, staying, [note])


def _leaving(
    what: str, address: Address, names: Sequence[str], staying: Sequence[str], notes: Sequence[str]
) -> Preview:
    """What leaves, what stays, and what else is to be known."""
    told = [f"leaves this machine: {', '.join(map(clean_line, names))}"]
    if staying:
        told.append(f"stays here: {', '.join(map(clean_line, staying[:20]))}")
    return Preview(
        safe(f"Share {what} at {address.text}."),
        changes=(Change(stores_address.SHARE, "create"),),
        notes=tuple(map(safe, (*told, *notes))),
    )


def _ending(folder: str) -> Preview:
    if not is_shared(folder):
        raise Refused(f"{folder} is not shared")
    return Preview("End the sharing of this folder; it stays as it is, and so does the store.")


_REQUEST_SCHEMA = "acp.ask/1"

_STATES = {
    asking.DONE: OutcomeState.DONE,
    asking.REFUSED: OutcomeState.REFUSED,
    asking.EXPIRED: OutcomeState.REFUSED,
    "": OutcomeState.REQUESTED,
}


def ask_host(context: Context, now: datetime) -> Action:
    """Ask a host on which another participant acts."""
    folder = context.key
    shared = is_shared(folder)
    away = _elsewhere(folder) if shared else {}
    who = next(iter(away), None)
    narrowed = {"participant": {"default": who}, "host": {"default": away.get(who or "")}}
    return bound(
        ASKING,
        context,
        lambda values: _preview_request(folder, values),
        lambda values: _outcome(folder, _asked(folder, _wanted(values))),
        narrowed=narrowed if who else None,
        offered=shared,
    )


def ask(values: Values) -> int:
    """``acp ask``; the exit code."""
    folder = values.folder
    if values.dry_run:
        preview = _preview_request(folder, values)
        return show(_REQUEST_SCHEMA, "ask", preview, as_json=values.json)
    request = _asked(folder, _wanted(values))
    outcome = _outcome(folder, request)
    note(os.path.abspath(folder), ASKING, values, outcome)
    if outcome.state is OutcomeState.REFUSED:
        raise Refused(outcome.sentence)
    if values.json:
        say_object(_REQUEST_SCHEMA, "ask", collaboration=os.path.abspath(folder), id=request.id, host=request.host,
                   state=request.state or "open", sentence=outcome.sentence)  # fmt: skip
    elif outcome.state is OutcomeState.UNKNOWN:
        warn(outcome.sentence)
    else:
        say(outcome.sentence)
    return ASKING.unknown if outcome.state is OutcomeState.UNKNOWN else 0


def _asked(folder: str, wanted: Wanted) -> Asked:
    """The request, with its answer if that came in time."""
    if wanted.verb in asking.PERMITS:
        return asked.answer(folder, wanted)
    return write_sharing.ask(folder, wanted)


def _wanted(values: Values) -> Wanted:
    return Wanted(
        values.host, values.verb, values.participant, values.text, values.expires, values.wait
    )


def _elsewhere(folder: str) -> dict[str, str]:
    """Participants that act on other hosts, each with its host, by what was last read."""
    me = hosts.this_host()
    leases = sorted(manifests.read_leases(folder).values())
    return {each.participant: each.host for each in leases if each.host != me}


def _preview_request(folder: str, values: Values) -> Preview:
    request = write_sharing.checked(folder, _wanted(values))
    host, who = clean_line(request.host, 80), clean_line(request.participant, 200)
    text = f" with the message “{clean_line(request.text, _SHOWN_ANSWER)}”" if request.text else ""
    return Preview(
        safe(f"Ask {host} to {request_sentence(request)}{text}."),
        notes=(safe(f"{host} follows the request only if its owner accepts {request.verb} requests for {who}"),),
    )  # fmt: skip


def _outcome(folder: str, request: Asked) -> Outcome:
    host = clean_line(request.host, 80)
    if request.state:
        text = f"{host}: {answer_of(request)}"
    else:
        shown = shlex.quote(clean_line(folder, 4_096))
        text = f"{host} has not answered yet; `acp hosts {shown}` shows its answer"
    return Outcome(_STATES.get(request.state, OutcomeState.UNKNOWN), safe(text))
