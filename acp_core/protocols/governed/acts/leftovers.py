"""What was left half done, or was changed by others: finished, brought back, taken, set aside."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from acp_core.model.action import Action, Change, Outcome, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import sentence_case
from acp_core.protocols.governed import schema
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
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.own_writes import fault, interrupted
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.write import changes as differences
from acp_core.protocols.governed.write import decide, restore
from acp_core.protocols.governed.write import set_aside as aside
from acp_core.protocols.governed.write.accept import reserved_changed
from acp_core.protocols.governed.write.journal import Interrupted
from acp_core.protocols.governed.write.opened import Opened, read_unlocked, refuse_agents
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def recovery(context: Context, now: datetime) -> Action:
    """Finish what a killed command had begun; offered where one was killed."""
    spec, place = table_deciding.RECOVERY, context.key

    def preview(values: Values) -> Preview:
        left = interrupted(_folder(place))
        if left is not None:
            if reason := fault(Path(place)):
                raise Refused(f"{left.what} can be neither finished nor undone: {reason}")
            said = f"Finish “{left.what}”: {left.done} of {left.total} files are written."
            data = facts(spec, place, dry_run=True, interrupted=left._asdict(), changed=())
            return Preview(safe(said), data=data)
        opened = read_unlocked(place, spec.name)
        if guard.lost(opened.run):
            return _restoring(spec, opened)
        changed = reserved_changed(opened)
        data = facts(spec, place, dry_run=True, interrupted=None, changed=changed)
        return Preview("Nothing was interrupted.", data=data)

    def perform(values: Values) -> Outcome:
        finished, restored = decide.recover(_folder(place), utc_now())
        said = []
        if finished is not None:
            how = "Finished" if finished.completed else f"Rolled back ({finished.reason})"
            said.append(f"{how}: {finished.what}.")
        if restored is not None:
            said.append(f"Done: {restored.sentence}.")
        about = finished._asdict() if finished else None
        sentence = " ".join(said) or "Nothing was interrupted."
        brought = restored.how if restored else None
        return done(spec, place, sentence, recovered=about, restored=brought)

    return bound(spec, context, preview, perform, offered=_is_needed(place))


def _is_needed(place: str) -> bool:
    """Whether a command was interrupted, or the state is lost and can be brought back here."""
    if interrupted(Path(place)) is not None:
        return not fault(Path(place))
    try:
        restore.restored(read_unlocked(place, schema.RECOVER), utc_now())
    except (Refused, OSError):
        return False
    return True


def _restoring(spec: ActionSpec, opened: Opened) -> Preview:
    found = restore.restored(opened, utc_now())
    changes = differences.of_writes(opened.root, found.writes)
    data = facts(spec, opened.key, dry_run=True, interrupted=None, restores=found.how)
    return Preview(safe(f"{sentence_case(found.sentence)}."), changes, data=data)


def _folder(place: str) -> Path:
    if not Path(place).is_dir():
        raise Refused(f"{place} is not a folder")
    return Path(place)


def taking_files(context: Context, now: datetime) -> Action:
    """Take the run's own files as they are, although somebody but acp wrote them."""
    spec, place = table_deciding.TAKING_FILES, context.key

    def preview(values: Values) -> Preview:
        refuse_agents()
        left = interrupted(_folder(place))
        data = facts(spec, place, dry_run=True, interrupted=left._asdict() if left else None)
        if left is not None:
            return Preview(_leaving(left), data=data)
        names = reserved_changed(read_unlocked(place))
        if not names:
            raise Refused("only acp changed the run's files")
        changes = tuple(
            Change(safe(name), "replace", differences.since_sealed(Path(place), name))
            for name in names
        )
        sentence = "Accept these files with the changes of others."
        return Preview(sentence, changes, data=data | {"changed": names})

    def perform(values: Values) -> Outcome:
        became = decide.take_files(_folder(place))
        if became is None:
            return done(spec, place, "Nothing was interrupted or changed.", recovered=None)
        said = f"The files are accepted as they are: {became.what}."
        return done(spec, place, said, recovered=became._asdict())

    changed = isinstance(context, Opened) and bool(reserved_changed(context))
    return bound(spec, context, preview, perform, offered=changed or bool(fault(Path(place))))


def _leaving(left: Interrupted) -> str:
    return safe(f"Leave “{left.what}” as it is: {left.done} of {left.total} files are written.")


def bringing_back(context: Context, now: datetime) -> Action:
    """Put the state back as acp wrote it last, where somebody else changed it since."""
    opened = (
        context if isinstance(context, Opened) else read_unlocked(context.key, schema.BRING_BACK)
    )

    def perform(values: Values) -> Done:
        decide.bring_back(opened.root, utc_now())
        return Done("Restored the state that acp wrote last.", data={"brought_back": True})

    def plan(fresh: Opened, values: Values) -> Planned:
        return None, decide.bringing_back(fresh, utc_now())

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        return "Restore the state that acp wrote last.", ()

    return of_run(
        table_deciding.BRINGING_BACK, opened, Steps(plan, describe, perform),
        offered=_can_be_brought_back(opened),
    )  # fmt: skip


def _can_be_brought_back(opened: Opened) -> bool:
    try:
        decide.bringing_back(opened, utc_now())
    except (Refused, OSError):
        return False
    return True


def setting_aside(context: Context, now: datetime) -> Action:
    """Set aside what the existing program left half written."""
    opened = open_run(context)

    def perform(values: Values) -> Done:
        places = aside.set_aside(opened.root, utc_now())
        return Done(f"Set aside as {', '.join(places)}.", data={"set_aside": places})

    def plan(fresh: Opened, values: Values) -> Planned:
        return None, aside.setting_aside(fresh, utc_now())

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        begun = "; ".join(
            existing_program.describe_transaction(each) for each in fresh.run.unfinished[:10]
        )
        return f"Set aside the unfinished {begun} of the agentxchain program.", ()

    return of_run(
        table_deciding.SETTING_ASIDE, opened, Steps(plan, describe, perform),
        offered=bool(opened.run.unfinished),
    )  # fmt: skip
