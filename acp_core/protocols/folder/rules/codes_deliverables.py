"""Explanation and remedy of the rules about deliverables (dialect v2), by code."""

from __future__ import annotations

_EDIT = "Correct the declaration in protocol.json."
_NEVER = "Earlier events are never rewritten: append blocked, and continue in a new folder with `acp continue`."
_FREEZE = "If the change is intended, continue in a new folder with `acp continue`; otherwise restore the file."

DELIVERABLES: dict[str, tuple[str, str]] = {
    # protocol.json
    "ACP130": (
        "A collaboration with deliverables names its protocol.",
        'Set `"protocol": "acp"` in protocol.json.',
    ),
    "ACP131": (
        "acp does not know this schema version: it shows the folder but does not write to it.",
        "Use a newer acp, or set schemaVersion to 2 if the folder uses that version.",
    ),
    "ACP132": (
        "A gate must have a source (objective or generated) and a text.",
        'Write each gate as {"source": "objective", "text": "..."}.',
    ),
    "ACP133": (
        "Deliverables are stored in the folder (internal) or outside it (external).",
        _EDIT,
    ),
    "ACP134": (
        "External deliverables need the root of their repository.",
        _EDIT,
    ),
    "ACP135": (
        "An absolute path would mean something else on another machine.",
        "Write repoRoot relative to the collaboration's folder, such as `..`.",
    ),
    "ACP136": (
        "repoRoot must be an existing folder that holds the collaboration, and not the whole disk.",
        "Write repoRoot relative to the collaboration's folder, such as `..`.",
    ),
    "ACP137": ("Internal deliverables have no repository root.", "Remove repoRoot."),
    "ACP138": ("The folder of the deliverables must be named.", _EDIT),
    "ACP139": ("Deliverables must be inside their root.", _EDIT),
    "ACP140": ("There is nothing to produce without a primary deliverable.", _EDIT),
    "ACP141": (
        "A custom deliverable needs a check list of its sections.",
        "Add the section titles to deliverables.primary.checklist.",
    ),
    "ACP142": (
        "The type decides which sections are required; this type is unknown.",
        "Use one of the known types, or custom with a check list.",
    ),
    "ACP143": ("Deliverables are Markdown files, so that every agent can read them.", _EDIT),
    "ACP144": ("A declared file must be inside the deliverables' folder.", _EDIT),
    "ACP145": ("Each supporting deliverable is a file of its own.", _EDIT),
    "ACP146": ("A file cannot be the primary and a supporting deliverable at once.", _EDIT),
    "ACP147": ('An attachment is an object such as {"file": "data.csv"}.', _EDIT),
    "ACP148": ("An attachment must name its file.", _EDIT),
    "ACP149": (
        "acp checks only the first ones.",
        "Check protocol.json: it is probably damaged.",
    ),
    # events
    "ACP501": (
        "An event about a deliverable must have a role: primary or supporting.",
        "Append such events with --role.",
    ),
    "ACP502": (
        "An event about a deliverable must name its file.",
        "Append such events with --doc and the deliverable's reference.",
    ),
    "ACP503": (
        "The digest, 64 lower-case hex digits, proves later that what was frozen has not changed.",
        "Append deliverable_frozen with --sha256, or let `acp append` compute it.",
    ),
    "ACP504": ("The deliverable was changed after it was frozen.", _FREEZE),
    "ACP505": ("The event names another file than the primary deliverable.", _NEVER),
    "ACP506": (
        "The event names a file that protocol.json does not declare.",
        "Declare it under deliverables.supporting.",
    ),
    "ACP507": ("The frozen file is missing or cannot be read.", _FREEZE),
    # the texts
    "ACP510": (
        "A deliverable is missing although participants work on it.",
        "Restore the file, or correct its declaration in protocol.json.",
    ),
    "ACP511": (
        "A deliverable must show its status.",
        "Add a line `Status: Draft`, `Status: In Review` or `Status: Frozen`.",
    ),
    "ACP512": (
        "A frozen deliverable must have the status Frozen.",
        "Set `Status: Frozen` before you freeze it: the digest covers that line too.",
    ),
    "ACP513": (
        "The deliverable's type requires this section.",
        "Add a heading of level 2 with exactly this text.",
    ),
    "ACP514": ("A frozen deliverable must not have empty sections.", "Fill in the section."),
    "ACP515": (
        "The deliverable cannot be read.",
        "Make it a regular UTF-8 text file of at most 4 MiB below the deliverables' folder.",
    ),
    "ACP521": (
        "protocol.json marks the file as frozen, but the log has no freeze event.",
        "Append deliverable_frozen with --role supporting, or set frozen to false.",
    ),
    "ACP522": (
        "The log has a freeze event, but protocol.json does not mark the file as frozen.",
        "Set frozen to true in its declaration.",
    ),
    "ACP523": (
        "A declared attachment is missing.",
        "Put the file in place, or remove it from protocol.json.",
    ),
    # what must name them
    "ACP530": (
        "Decisions are numbered so that others can refer to them.",
        "Write headings of level 3 in decisions.md as `### D1. Title`.",
    ),
    "ACP531": ("A decision must say what was decided.", "Add a line `- Decision: ...`."),
    "ACP532": (
        "A decision must name where it is implemented.",
        "Add a line `- Reflected in: ` with a deliverable's reference.",
    ),
    "ACP533": (
        "A decision must be implemented in a declared deliverable.",
        "Name the deliverable's reference in the decision's block.",
    ),
    "ACP534": ("The decisions' numbers must be 1, 2, 3 and so on.", "Renumber them in order."),
    "ACP535": ("Two decisions have the same number.", "Renumber them in order."),
    "ACP540": (
        "A review must name what it reviewed.",
        "Add a line `Reviewed primary deliverable: ` with its reference to review.md.",
    ),
    "ACP541": (
        "A review must state its scope.",
        "Add `Review Scope:` with a list to review.md.",
    ),
    "ACP542": (
        "A review must cover whether the deliverable is complete.",
        "Add `- Primary deliverable completeness` to the review's scope.",
    ),
    "ACP543": (
        "A review must name the deliverable.",
        "Name the primary deliverable's reference in review.md.",
    ),
    "ACP544": (
        "The conclusion must name what was produced.",
        "Name the primary deliverable's reference in conclusion.md.",
    ),
}
