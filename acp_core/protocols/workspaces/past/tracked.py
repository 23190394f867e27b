"""Which files of a run a recording keeps: everything that says how it went, and the outputs."""

from __future__ import annotations

from acp_core.model.text import clean_line
from acp_core.model.tracked import TrackedFile
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import Run

MOST = 500  # files of a run that are kept


def tracked_files(run: Run) -> tuple[TrackedFile, ...]:
    """Statuses, outputs, prompts, returns, what orchestrators keep, and the final output.

    Scratch folders and symbolic links are left out.
    """
    wanted = []
    scratch = tuple(f"{run.base.name}/{agent.name}/{schema.SCRATCH}/" for agent in run.agents)
    for file in run.files:
        if file.link or "/" not in file.name or file.name.startswith(scratch):
            continue
        wanted.append(TrackedFile(file.name, str(file.path), document=clean_line(file.name)))
    return tuple(wanted[:MOST])
