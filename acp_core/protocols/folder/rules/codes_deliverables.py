"""Explanation and remedy of the rules about deliverables (dialect v2), by code."""

from __future__ import annotations

_EDIT = "Correct the declaration in protocol.json."
_NEVER = "Earlier events are never rewritten: append blocked, and go on in a new folder with `acp continue`."
_FREEZE = "If the change is wanted, go on in a new folder with `acp continue`; otherwise restore the file."

DELIVERABLES: dict[str, tuple[str, str]] = {
    # protocol.json
    "ACP130": (
        "A collaboration with deliverables names its protocol.",
        'Set `"protocol": "acp"` in protocol.json.',
    ),
    "ACP131": (
        "This program does not know the dialect: it shows the folder but does not write to it.",
        "Use a newer program, or set schemaVersion to 2 if it is that dialect.",
    ),
    "ACP132": (
        "A gate says where it comes from (objective or generated) and what it is.",
        'Write each gate as {"source": "objective", "text": "..."}.',
    ),
    "ACP133": ("Deliverables lie in the folder (internal) or beside it (external).", _EDIT),
    "ACP134": (
        "External deliverables lie below a repository's root, which must be named.",
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
    "ACP139": ("Deliverables must not lie outside their root.", _EDIT),
    "ACP140": ("There is nothing to produce without a primary deliverable.", _EDIT),
    "ACP141": (
        "For a custom deliverable the check list says which sections it must have.",
        "Add the section titles to deliverables.primary.checklist.",
    ),
    "ACP142": (
        "The type decides which sections are required; this one is not known.",
        "Use one of the known types, or custom with a check list.",
    ),
    "ACP143": ("Deliverables are Markdown files, so that every agent can read them.", _EDIT),
    "ACP144": ("A declared file must lie below the deliverables' folder.", _EDIT),
    "ACP145": ("Each supporting deliverable is a file of its own.", _EDIT),
    "ACP146": ("A file cannot be the primary and a supporting deliverable at once.", _EDIT),
    "ACP147": ('An attachment is an object such as {"file": "data.csv"}.', _EDIT),
    "ACP148": ("An attachment must name its file.", _EDIT),
    "ACP149": (
        "Only the first ones are looked at.",
        "Check protocol.json: it is probably damaged.",
    ),
    # events
    "ACP501": (
        "An event about a deliverable says whether that is the primary or a supporting one.",
        "Append such events with --role.",
    ),
    "ACP502": (
        "An event about a deliverable names it.",
        "Append such events with --doc and the deliverable's reference.",
    ),
    "ACP503": (
        "The digest, 64 lower-case hex digits, proves later that what was frozen has not changed.",
        "Append deliverable_frozen with --sha256, or let `acp append` work it out.",
    ),
    "ACP504": ("The deliverable was changed after it was frozen.", _FREEZE),
    "ACP505": ("The event names another file than the primary deliverable.", _NEVER),
    "ACP506": (
        "The event names a file that protocol.json does not declare.",
        "Declare it under deliverables.supporting.",
    ),
    "ACP507": ("What was frozen is gone or cannot be read.", _FREEZE),
    # the texts
    "ACP510": (
        "A deliverable that participants work on is not there.",
        "Restore the file, or correct its declaration in protocol.json.",
    ),
    "ACP511": (
        "Readers must see how far a deliverable is.",
        "Add a line `Status: Draft`, `Status: In Review` or `Status: Frozen`.",
    ),
    "ACP512": (
        "A deliverable that was frozen says so itself.",
        "Set `Status: Frozen` before you freeze it: the digest covers that line too.",
    ),
    "ACP513": (
        "The deliverable's type asks for this section.",
        "Add a heading of level 2 with exactly this text.",
    ),
    "ACP514": ("A frozen deliverable has nothing left to fill in.", "Fill in the section."),
    "ACP515": (
        "The deliverable cannot be read.",
        "Make it a regular UTF-8 text file of at most 4 MiB below the deliverables' folder.",
    ),
    "ACP521": (
        "protocol.json says that it is frozen, the log does not.",
        "Append deliverable_frozen with --role supporting, or set frozen to false.",
    ),
    "ACP522": (
        "The log says that it is frozen, protocol.json does not.",
        "Set frozen to true in its declaration.",
    ),
    "ACP523": (
        "A declared attachment is not there.",
        "Put the file in place, or remove it from protocol.json.",
    ),
    # what must name them
    "ACP530": (
        "Decisions are numbered so that others can refer to them.",
        "Write headings of level 3 in decisions.md as `### D1. Title`.",
    ),
    "ACP531": ("A decision must say what was decided.", "Add a line `- Decision: ...`."),
    "ACP532": (
        "A decision must say where it is carried out.",
        "Add a line `- Reflected in: ` with a deliverable's reference.",
    ),
    "ACP533": (
        "A decision must be carried out in a declared deliverable.",
        "Name the deliverable's reference in the decision's block.",
    ),
    "ACP534": ("The decisions' numbers must be 1, 2, 3 and so on.", "Renumber them in order."),
    "ACP535": ("Two decisions bear one number.", "Renumber them in order."),
    "ACP540": (
        "A review must say what it has looked at.",
        "Add a line `Reviewed primary deliverable: ` with its reference to review.md.",
    ),
    "ACP541": (
        "A review must say how far it went.",
        "Add `Review Scope:` with a list to review.md.",
    ),
    "ACP542": (
        "A review must have looked at whether the deliverable is complete.",
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
