"""What a new run begins with: mandates, prompts, and the planning documents to be filled in.

The names and the headings that gates look for are those of the governed protocol specification,
"Files", and of the existing program.
"""

from __future__ import annotations

MANDATES = {
    "pm": (
        "Product Manager",
        "Fix the scope, the acceptance criteria and the order of the work.",
        "review_only",
    ),
    "dev": (
        "Developer",
        "Write the code that the plan asks for, and show that it works.",
        "authoritative",
    ),
    "qa": (
        "Quality Assurance",
        "Doubt the implementation: run the tests, look for what they do not cover.",
        "review_only",
    ),
}
"""Title, mandate and write authority of the roles that are known."""

PROMPTS = {
    "pm": (
        "Fill in .planning/ROADMAP.md and .planning/SYSTEM_SPEC.md. Write “Approved: YES” into"
        " .planning/PM_SIGNOFF.md when the plan is complete, and ask for the next phase."
    ),
    "dev": (
        "Write code and tests. Say what you changed and how it was verified in"
        " .planning/IMPLEMENTATION_NOTES.md, and ask for the next phase when it works."
    ),
    "qa": (
        "Fill in .planning/acceptance-matrix.md and .planning/RELEASE_NOTES.md, and give your"
        " verdict in .planning/ship-verdict.md. Ask for completion only when all has passed."
    ),
}

PLANNING = {
    "PM_SIGNOFF.md": "# PM Signoff\n\nApproved: NO\n",
    "ROADMAP.md": "# Roadmap\n\n## Phases\n\n| Phase | Goal | Status |\n|---|---|---|\n",
    "SYSTEM_SPEC.md": (
        "# System Spec\n\n## Purpose\n\n(what it is for)\n\n## Interface\n\n(what others use)\n\n"
        "## Acceptance Tests\n\n(what must hold)\n"
    ),
    "IMPLEMENTATION_NOTES.md": (
        "# Implementation Notes\n\n## Changes\n\n(what was changed)\n\n## Verification\n\n"
        "(how it was verified)\n"
    ),
    "acceptance-matrix.md": (
        "# Acceptance Matrix\n\n| Req # | Requirement | Evidence | Status |\n|---|---|---|---|\n"
    ),
    "ship-verdict.md": "# Ship Verdict\n\n## Verdict: PENDING\n",
    "RELEASE_NOTES.md": (
        "# Release Notes\n\n## User Impact\n\n(what users notice)\n\n## Verification Summary\n\n"
        "(what was checked)\n"
    ),
}

TALK = "# {name}: talk\n\nHumans and agents write to each other here. Each accepted turn is noted.\n\n---\n"

IGNORE = "*\n!.gitignore\n!prompts/\n!prompts/**\n!reviews/\n!reviews/**\n"
"""The run's own files stay out of commits, or a checkout would turn the run back."""
