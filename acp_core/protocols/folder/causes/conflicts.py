"""What stands between a shared folder and its store, and only a person can settle."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Cause
from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.conflict_copies import KeptText
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema.act_names import SYNC
from acp_core.protocols.kit.diagnosis import Case

_LONG = 300


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
    """Every text that waits to be settled, and a store that only a newer acp can use."""
    if facts.newer_share:
        yield _newer(facts.newer_share)
    if facts.strange_share:
        yield _strange(facts.strange_share)
    for each in facts.kept:
        yield _events(each) if each.document == schema.LOG_FILE else _document(each)


def _newer(reason: str) -> Cause:
    return Cause(
        "C6",
        "this acp is too old for the store of this folder",
        advice="update acp on this machine; until then, what is here is as it was when it was read last",
        evidence=(reason,),
        key="newer-share",
    )


def _strange(reason: str) -> Cause:
    return Cause(
        "C6",
        "another program changed what names the store of this folder",
        advice="put it back with `acp join`, or end the sharing with `acp unshare`; find the program that changed it",
        evidence=(clean_line(reason, 1_000),),
        key="strange-share",
    )


def _document(kept: KeptText) -> Cause:
    name = clean_line(kept.document, _LONG)
    return Cause(
        "C6",
        f"{name} was changed here and on another host",
        advice=f"take yours with `acp sync --mine {name}`, or keep the other with `acp sync --theirs {name}`",
        evidence=(
            f"{name} holds the text of the other host",
            f"the text of this host is in {clean_line(kept.file, _LONG)}",
        ),
        remedy=SYNC,
        given=(("mine", kept.document),),
        key=f"gave-way:{clean_line(kept.file, _LONG)}",
        document=name,
    )


def _events(kept: KeptText) -> Cause:
    return Cause(
        "C6",
        "events that were appended here without acp are not in the store",
        advice="append them again with `acp sync --again`, or drop them with `acp sync --theirs events.jsonl`",
        evidence=(f"they are in {clean_line(kept.file, _LONG)}",),
        remedy=SYNC,
        given=(("again", "true"),),
        key=f"gave-way:{clean_line(kept.file, _LONG)}",
        document=schema.LOG_FILE,
    )
