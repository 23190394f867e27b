"""The names of the coordination log's files, and what feedback.md should say by the state.

feedback.md has four sections; lines that others wrote into it stay. Source: development cycle
specification, "Coordination Log".
"""

from __future__ import annotations

import re

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object, agent_in, coordination_of, one_line

TIMELINE, DECISIONS, FEEDBACK = "timeline.md", "decisions.log", "feedback.md"

FEEDBACK_SECTIONS = (
    "Timeline",
    "Decision Records",
    "Blockers & Resolutions",
    "Cross-Agent Dependencies",
)

SEEN_AT = "seen_at"  # since when the orchestrator knows of what bears no time itself
_TIMES = ("asked_at", "reported_at", "timestamp", "created_at", SEEN_AT)
_ID = re.compile(r"^- (?:\[\S*\] )?(?:Blocker: )?([\w.-]+): ")
_HEADING = re.compile(r"^## +(.+?) *$")


def feedback_text(held: str, timeline: str, state: Object) -> str:
    """feedback.md as it should stand: its four sections, and every line that others wrote."""
    fresh = {
        "Timeline": [bracketed(line) for line in timeline.splitlines() if line.startswith("- ")],
        "Decision Records": _decisions(state),
        "Blockers & Resolutions": _blockers(state),
        "Cross-Agent Dependencies": _dependencies(state),
    }
    own = _sections(held)
    above = [line for line in own.pop("", []) if not line.startswith("# Feedback")]
    parts = [f"# Feedback & Coordination Log - Version {documents_version(state)}", "", *above]
    for name in FEEDBACK_SECTIONS:
        kept = own.pop(name, [])
        if name == "Timeline":
            ours = set(fresh[name])
            lines = [line for line in kept if line not in ours] + fresh[name]
        else:
            lines = _joined(kept, fresh[name])
        parts += [f"## {name}", *lines, ""]
    for name, lines in own.items():
        parts += [f"## {name}", *lines, ""]
    return "\n".join(parts)


def bracketed(line: str) -> str:
    """A line of timeline.md as feedback.md has it: with its time in brackets, its date too."""
    return re.sub(r"^- (\d\S*) ", r"- [\1] ", line)


def _sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading that are not blank; those above the first one under ""."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            name = heading[1]
            found.setdefault(name, [])
        elif line.strip():
            found.setdefault(name, []).append(line)
    return found


def _joined(kept: list[str], fresh: list[str]) -> list[str]:
    """Entries of ours, each a line with indented ones below, in place of older forms of them."""
    ours = {_key(entry) for entry in _entries(fresh)}
    others = [line for entry in _entries(kept) if _key(entry) not in ours for line in entry]
    return others + fresh


def _key(entry: list[str]) -> str:
    """What an entry is about: the id in it, or its beginning."""
    found = _ID.match(entry[0])
    return found[1] if found else entry[0].split(": ")[0]


def _entries(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for line in lines:
        if found and line[:1] in (" ", "\t"):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def time_of(entry: Object) -> str:
    """When a decision was asked for, or a blocker reported; "" where nobody said it."""
    return next((said for key in _TIMES if (said := one_line(schema.text(entry.get(key))))), "")


def _at(entry: Object) -> str:
    at = time_of(entry)
    return f"[{at}] " if at else ""


def _decisions(state: Object) -> list[str]:
    lines = []
    for each in coordination_of(state).decisions:
        lines.append(f"- {_at(each.raw)}{one_line(each.id)}: {one_line(each.description)}")
        lines.append(f"  - Decision: {one_line(each.chosen_option) or 'pending'}")
        for name in ("rationale", "impact", "made_by"):
            if told := one_line(schema.text(each.raw.get(name))):
                lines.append(f"  - {name.replace('_', ' ').capitalize()}: {told}")
    return lines


def _blockers(state: Object) -> list[str]:
    lines = []
    for each in coordination_of(state).blockers:
        about = f"{one_line(each.id)}: {one_line(each.description)}"
        lines.append(f"- {_at(each.raw)}Blocker: {about}")
        lines.append(f"  - Reported by: {one_line(each.reported_by).upper()}")
        lines.append(f"  - Resolution: {one_line(each.resolution) or '-'}")
        lines.append(f"  - Status: {(one_line(each.status) or 'open').capitalize()}")
    return lines


def _dependencies(state: Object) -> list[str]:
    lines = []
    for name, needs in schema.DEPENDS.items():
        if needs:
            at = one_line(agent_in(state, needs).version)
            of = f" (v{at})" if at else ""
            lines.append(f"- {name.upper()} depends on: {needs.upper()}{of}")
    return lines


def documents_version(state: Object) -> str:
    """The version that the iteration's documents have."""
    return one_line(schema.text(state.get("version"))) or "1.0.0"
