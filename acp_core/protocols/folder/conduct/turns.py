"""The turns of a folder collaboration, for loops: whose it is, what ends it, what is recorded.

Source: folder protocol specification, "Phases" and "Events".
"""

from __future__ import annotations

import json
import os
from datetime import datetime

from acp_core.agents import background
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model import Outcome, OutcomeState, Status
from acp_core.model.errors import NotStarted, Refused
from acp_core.model.text import clean_line
from acp_core.model.turn import Brief, Mode, TurnState
from acp_core.protocols.folder.prompts.turn import Situation, prompt
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.read.current_state import Step, required, steps
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.unrecoverable_log import full, hopeless
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import V2, is_shared, text_in
from acp_core.protocols.folder.write import shared
from acp_core.protocols.folder.write.append import Request, append
from acp_core.protocols.processes import SYNC
from acp_core.stores import address as stores_address
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.address import Address
from acp_core.stores.hosts import open_engine

_GRACE = 2.0  # seconds for which a torn or missing file is taken for one being written

_SUMMARY = 300  # characters of a summary that is told or taken from a draft

_RECENT = 5  # events that a prompt tells of

_GATED = ("readiness_passed", "completed")  # whose documents are checked when they are appended

_OVER = {"completed": Status.COMPLETED, "blocked": Status.BLOCKED}


class Turns:
    """The turns of one collaboration.

    Args:
        folder: Its folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._facts = Facts(folder, grace=_GRACE)

    def turn(self, participant: str, now: datetime, brief: Brief | None = None) -> TurnState:
        """Where ``participant`` stands, read now."""
        facts = self._facts
        facts.refresh(now.timestamp())
        trouble = self._trouble(participant)
        if trouble:
            return TurnState(waited=False, status=Status.UNKNOWN, trouble=trouble)
        machine = facts.history.machine
        history = facts.history
        if is_shared(self._folder) and (trouble := self._elsewhere(participant, brief)):
            return TurnState(waited=False, status=Status.ACTIVE, trouble=trouble)
        own = history.latest.get(participant)
        latest = history.entries[own] if own is not None else None
        wait = machine.waits.get(participant)
        waited = wait is not None
        found = steps(facts, participant) if waited else ()
        what = required(found)[0].what if found else _waiting_for(facts)
        return TurnState(
            waited=waited,
            status=_OVER.get(machine.phase, Status.ACTIVE),
            what=what,
            since=records.parse_time(wait.at) if wait else None,
            since_event=str(wait.seq) if wait and wait.seq is not None else "",
            own=history.said.get(participant, 0),
            own_event=f"{latest.event} (seq {latest.name})" if latest else "",
            documents=(documents := self._documents(found, brief)),
            reads=tuple(path for path in self._reads() if path not in documents),
            gated=bool(found) and self._is_gated(required(found)[0]),
        )

    def _elsewhere(self, participant: str, brief: Brief | None) -> str:
        """Why a participant of a shared collaboration cannot act on this host now; "" where it can.

        A loop (it has a brief) takes the lease when it is its turn, before its program runs.
        """

        waited = participant in self._facts.history.machine.waits
        return trouble(self._folder, participant, take=waited and brief is not None,
                                    stays=brief is not None)  # fmt: skip

    def _trouble(self, participant: str) -> str:
        """Why it cannot be told whose turn it is; "" where it can."""
        facts = self._facts
        if facts.protocol is None:
            return f"protocol.json: {facts.protocol_problem or 'not read yet'}"
        if facts.dialect == records.UNKNOWN_DIALECT:
            return "protocol.json has an unknown schemaVersion: acp does not write to the folder"
        if participant not in facts.participants:
            return f"{participant} is not listed in protocol.json"
        if facts.log_problem:
            return f"events.jsonl: {facts.log_problem}"
        beyond = full if facts.takes_no_more else hopeless
        broken = beyond(self._folder, facts.lines)
        ended = facts.history.machine.ending
        return f"{broken.sentence}: {broken.instruction}" if broken and not ended else ""

    def _reads(self) -> list[str]:
        """The documents that a turn may be about, as far as they exist."""
        facts = self._facts
        files = [facts.files[name] for name in records.DOCUMENTS]
        files += [declared.file for declared in facts.deliverables]
        return [file.path for file in files if file.path is not None and not file.problem]

    def _is_gated(self, step: Step) -> bool:
        """Whether it does not matter if the step's documents changed: what they say does."""
        if step.event != "deliverable_frozen":
            return step.event in _GATED
        primary = self._facts.primary
        return bool(primary and primary.file.scan and primary.file.scan.status == "Frozen")

    def _documents(self, found: tuple[Step, ...], brief: Brief | None) -> tuple[str, ...]:
        """The files that the turn changes; only its first event's, where the loop appends."""
        if brief is None or not found:
            return ()
        wanted = required(found)[:1] if brief.mode is Mode.CHANGE else found
        return tuple(dict.fromkeys(path for step in wanted for path in step.paths(brief)))

    def prompt(self, participant: str, brief: Brief) -> str:
        """What a program is told so that it takes this participant's turn."""
        facts = self._facts
        protocol = facts.protocol or {}
        entries = facts.history.entries
        situation = Situation(
            folder=os.path.abspath(self._folder),
            participant=participant,
            participants=tuple(facts.participants),
            owner=facts.history.machine.owner or "",
            objective=text_in(protocol, "objective"),
            gates=tuple(records.gate_texts(protocol)),
            phase=facts.history.machine.phase,
            round=facts.history.machine.round,
            last_seq=entries[-1].seq or len(entries) if entries else 0,
            recent=tuple(
                clean_line(f"{e.name} {e.sender} {e.event}: {e.summary}", _SUMMARY)
                for e in entries[-_RECENT:]
            ),
            deliverable=self._deliverable(),
            v2=facts.dialect == V2,
        )
        return prompt(situation, steps(facts, participant), brief)

    def _deliverable(self) -> str:
        primary = self._facts.primary
        return primary.file.path or "" if primary else ""

    def conclude(self, participant: str, brief: Brief, by: str, now: datetime) -> Outcome:
        """Append the event of a turn whose documents a program changed."""
        self._facts.refresh(now.timestamp())
        found = required(steps(self._facts, participant))
        if not found:
            return Outcome(OutcomeState.REFUSED, f"{participant} does not have the turn")
        step = found[0]
        remark = f"appended by acp on behalf of {by}, which cannot append"
        try:
            summary, review = _summary_and_review(step, brief)
            request = Request(
                folder=self._folder,
                participant=participant,
                event=step.event,
                summary=f"{summary} ({remark})",
                doc=step.doc,
                reply_to=step.reply_to,
                role=step.role or None,
                review=review,
            )
            appended = append(request)
        except Refused as error:
            return Outcome(OutcomeState.REFUSED, str(error))
        except OSError as error:
            return Outcome(OutcomeState.REFUSED, error.strerror or str(error))
        told = f"{step.event} (seq {appended.entry.name}) {remark}"
        return Outcome(OutcomeState.DONE, told)


def _summary_and_review(step: Step, brief: Brief) -> tuple[str, str | None]:
    """The summary of an event, and the review that goes with it.

    Raises:
        Refused: the draft that should hold them cannot be read, or is empty.
    """
    if not step.draft:
        return f"{step.doc} changed", None
    path = step.draft_path(brief)
    try:
        text = read_bounded(path, records.MAX_DOCUMENT).decode()
    except Unreadable as error:
        raise Refused(f"{path}: {error.reason}") from None
    except UnicodeDecodeError:
        raise Refused(f"{path} is not UTF-8") from None
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if not first:
        raise Refused(f"{path} is empty")
    if step.event == "review_submitted":
        return "Review submitted", text
    return clean_line(first, _SUMMARY), None


def _waiting_for(facts: Facts) -> str:
    machine = facts.history.machine
    names = ", ".join(machine.waiting)
    return f"waiting for {names}" if names else f"phase is {machine.phase or 'none'}"


_LIMIT = 1 << 16


def trouble(folder: str, participant: str, *, take: bool, stays: bool) -> str:
    """Why a participant cannot act here now; "" where it can.

    Args:
        folder: the shared collaboration.
        participant: who would act.
        take: whether its lease is taken where nobody has it.
        stays: whether who asks goes on for long: then a process keeps the folder and its store the
            same, for as long as there are loops.
    """
    try:
        address = stores_address.pinned_address(folder)
        if stays and not following.is_synced(folder):
            background.start(SYNC.module, (folder,))
        lease = manifests.read_leases(folder).get(participant)
        wanted = hosts.lease_for(lease, participant, "launch", hosts.this_host())
        if wanted is not None and take:
            with open_engine(address) as engine:
                shared.take_lease(folder, engine, participant, "launch")
        elif take and _is_away(folder):
            _must_answer(folder, address)
    except hosts.LeaseElsewhere as error:
        return str(hosts.advised(error, address))
    except (Refused, NotStarted) as error:
        return str(error)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _is_away(folder: str) -> bool:
    """Whether the process of ``acp sync`` says that it does not reach the store."""
    try:
        note = json.loads(read_bounded(os.path.join(folder, following.NOTE), _LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return False
    return isinstance(note, dict) and note.get("reached") is False


def _must_answer(folder: str, address: Address) -> None:
    """Ask the store itself: whoever writes in the folder can write down that it is away.

    Raises:
        Refused: it does not answer: what a program appended now would be refused.
    """
    base = manifests.read_base(folder)
    if base is not None:
        with open_engine(address) as engine:
            engine.wait(base.tip, 0)


def leave(folder: str, participant: str) -> str:
    """Give back the lease of a participant whose loop has ended here; "" or why that failed."""
    try:
        lease = manifests.read_leases(folder).get(participant)
        if lease is None or (lease.host, lease.account) != (hosts.this_host(), hosts.account()):
            return ""
        with open_engine(stores_address.pinned_address(folder)) as engine:
            shared.release(folder, engine, (participant,))
    except (Refused, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        return (
            f"the other hosts do not know yet that {participant} can act elsewhere ({reason}); "
            f"`acp sync --release {participant}` tells them"
        )
    return ""
