"""The documents that a new collaboration starts with.

Source: folder protocol specification, "Files", "Review Format", "Readiness Gate" and "Final
Conclusion" for the headings. Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable

from acp_core.protocols.folder.schema.deliverables import Deliverable
from acp_core.protocols.folder.write.charter import Charter

README = "README.md"

REVIEW_BODY = """\
Context:
- Read `proposal.md` after event seq `<seq>`.

Position:
- ...

Concerns:
- ...

Required Changes:
- ...

Questions:
- ...
"""


def documents(charter: Charter) -> dict[str, str]:
    """Every Markdown file of a new collaboration's folder: name -> text."""
    second = charter.primary is not None
    return {
        README: readme(charter),
        "proposal.md": _proposal(charter),
        "review.md": _review(charter),
        "decisions.md": _decisions_v2(charter) if second else _DECISIONS,
        "readiness.md": _readiness_v2(charter) if second else _readiness(charter),
        "conclusion.md": _conclusion_v2(charter) if second else _CONCLUSION,
    }


def document(charter: Charter, name: str) -> str:
    """One file of `documents`."""
    return documents(charter)[name]


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _boxes(items: Iterable[str]) -> str:
    return _bullets(f"[ ] {item}" for item in items)


def readme(charter: Charter) -> str:
    """README.md: the second copy of what protocol.json is founded on, for people and repairs."""
    names = [f"`{name}`" for name in charter.participants]
    names[0] += " (owns the proposal)"
    files = [
        "`protocol.json`: objective, participants, gates, current phase, who is waited for",
        "`events.jsonl`: what happened, one event a line; only ever appended to",
        "`proposal.md`: the current proposal, nothing older",
        "`review.md`: every review, under a heading with the seq of its event",
        "`decisions.md`: what was accepted, nothing else",
        "`readiness.md`: open questions and their classification, blockers, gates",
        "`conclusion.md`: the answer to the objective",
    ]
    if charter.primary:
        files.append(f"`{_deliverable(charter).reference}`: the primary deliverable")
    return f"""\
# Collaboration

Agents and people work here on one objective. They do not message each other: this folder is
all that they share.

## Objective

{charter.objective}

## Participants

{_bullets(names)}

## Completion Gates

{_bullets(charter.gates)}

## Files

{_bullets(files)}

## Rules

- Act when `protocol.json` lists you in `waitingFor`; otherwise wait and edit nothing.
- Events are appended with `acp append` or the bundled script, never by hand, and never changed.
- While a review is awaited, the proposal's owner edits nothing that the reviewers read.
- A mistake is corrected by a new event; what cannot be solved here is a `blocked` event.
- Nothing is complete without `conclusion.md`.
"""


def _proposal(charter: Charter) -> str:
    if charter.primary is None:
        middle = """\
## Message/API Contracts

None yet.

## Operational Concerns

None yet."""
    else:
        middle = f"""\
## Deliverable Draft

The draft is in `{_deliverable(charter).reference}`.

## Review Focus

What the reviewers should look at first."""
    return f"""\
# Proposal

## Purpose

{charter.objective}

## Current Proposal

Not written yet.

{middle}

## Open Questions

None yet.

## Proposed Decisions

None yet.
"""


def _review(charter: Charter) -> str:
    scope = ""
    if charter.primary is not None:
        scope = f"""\
Reviewed primary deliverable: `{_deliverable(charter).reference}`

Review Scope:
- Primary deliverable completeness
- ...

"""
    body = "\n".join(f"    {line}".rstrip() for line in (scope + REVIEW_BODY).splitlines())
    return f"""\
# Reviews

Each review stands under a heading that carries the seq of its own `review_submitted` event,
not of the event that it answers (`acp append --review-file` writes both together):

    ## <ISO-8601 UTC> - <participant_id> - seq <seq of the event>

{body}
"""


_DECISIONS = """\
# Decisions

## Accepted Decisions

None yet. Only what was accepted stands here.
"""


def _decisions_v2(charter: Charter) -> str:
    deliverable = _deliverable(charter)
    return f"""\
# Decisions

## Accepted Decisions

### D1. Initial deliverable declaration

- Decision: the primary deliverable is `{deliverable.reference}`, of the type `{deliverable.type}`.
- Rationale: it was declared when the collaboration was started.
- Reflected in: `{deliverable.reference}`
"""


_CLASSIFICATION = """\
## Open Question Classification

Each open question is one line that begins with its class: `[resolved]`, `[deferred_nonblocking]`
(with `Reason: ...` on the same line), `[blocking]` or `[unresolved]`.

- [unresolved] The open questions have not been listed yet; replace this line."""


def _readiness(charter: Charter) -> str:
    return f"""\
# Readiness

{_CLASSIFICATION}

## Blocking Issues

None known.

## Deferred Follow-ups

None yet.

## Completion Gates

{_boxes(charter.gates)}

## Final Design Document Checklist

- [ ] Accepted Decisions
- [ ] Assumptions
- [ ] Deferred Follow-ups
- [ ] Implementation Blockers
- [ ] Ready to implement
"""


def _readiness_v2(charter: Charter) -> str:
    return f"""\
# Readiness

{_CLASSIFICATION}

## Objective Gates

{_boxes(charter.gates)}

## Generated Deliverable Gates

{_boxes(charter.generated_gates())}

## Deliverable Snapshot

The SHA-256 of the primary deliverable is recorded by the event `deliverable_frozen`.

## Supporting Deliverables

None.

## Attachments

None.

## Deferred Follow-ups

None yet.

## Implementation Blockers

None known.

## Ready to Implement

- [ ] Ready to implement
"""


_CONCLUSION = """\
# Conclusion

## Decision Outcome

- [blocked] TBD

## Rationale

TBD

## Accepted Decisions

TBD

## Implementation Approach

TBD

## Assumptions

TBD

## Deferred Follow-ups

TBD

## Implementation Blockers

TBD

## Next Action

TBD
"""


def _conclusion_v2(charter: Charter) -> str:
    return f"""\
# Conclusion

## Decision Outcome

- [blocked] Collaboration is not complete.

## Rationale

TBD

## Deliverable Receipt

- Primary deliverable: `{_deliverable(charter).reference}`

## Accepted Decisions Summary

TBD

## Readiness Result

TBD

## Assumptions

TBD

## Deferred Follow-ups

TBD

## Implementation Blockers

TBD

## Next Action

TBD
"""


def primary(charter: Charter) -> str:
    """The primary deliverable's first text: its status, and every section that its type asks for."""
    deliverable = _deliverable(charter)
    title = deliverable.file.rpartition("/")[2].removesuffix(".md").replace("-", " ").capitalize()
    parts = [f"# {title}", "Status: Draft"]
    parts += [f"## {section}" for section in deliverable.sections if section != "Status"]
    if "Status" in deliverable.sections:
        parts[1] = "## Status\n\nStatus: Draft"
    return "\n\n".join(parts) + "\n"


def _deliverable(charter: Charter) -> Deliverable:
    deliverable = charter.deliverable()
    if deliverable is None:
        raise ValueError("a v1 collaboration has no deliverable")
    return deliverable
