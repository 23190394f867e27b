"""Writing ``agentxchain-multi.json`` from repositories, branches and barriers that are named.

Source: governed protocol specification, "Coordinator config". Standard library only.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, modes
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import Plan, plan_of
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.write.journal import document

BARRIERS = ("planning-sync=planning", "verification-sync=verification")

"""The barriers of an initiative for which none are named: before building, and before shipping."""

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)\Z", re.DOTALL)


class Wish(NamedTuple):
    """What a new initiative is to be.

    ``repositories`` are texts like ``web=git@example.org:team/web.git#branch``: the name and the
    branch may be left out. ``barriers`` are texts like ``planning-sync=planning``.
    """

    repositories: Sequence[str]
    barriers: Sequence[str] = BARRIERS
    description: str = ""


def configuration(wish: Wish) -> Object:
    """The configuration of a new initiative.

    Raises:
        Refused: something in it is not sound: what, in a line.
    """
    config: Object = {
        "schema_version": "1.0",
        "super_run_id": f"super_run_{secrets.token_hex(6)}",
        "description": " ".join(wish.description.split()),
        "workstreams": [_stream(text.strip()) for text in wish.repositories],
        "barriers": list(_barriers(wish.barriers)),
        "context_generation": {
            "enabled": True,
            "output_dir": ".coordinator/context/",
            "include_decisions": True,
            "include_objections": True,
            "include_file_summaries": True,
        },
    }
    plan_of(config)
    return config


def planned(root: Path, wish: Wish) -> tuple[Object, Plan]:
    """The configuration and what it says. Writes nothing.

    Raises:
        Refused: as `configuration`, or there is one already.
    """
    if (root / schema.MULTI_CONFIG).exists():
        raise Refused(f"{root / schema.MULTI_CONFIG} already exists: edit it instead")
    config = configuration(wish)
    return config, plan_of(config)


def write(root: Path, config: Object) -> None:
    """Write the configuration, where there is none.

    Raises:
        Refused: there is one, or it cannot be written.
    """
    try:
        modes.shared_folder(root)
        atomic.create(root / schema.MULTI_CONFIG, document(config))
    except FileExistsError:
        raise Refused(f"{root / schema.MULTI_CONFIG} already exists: edit it instead") from None
    except OSError as error:
        raise Refused(f"{error.filename or root}: {error.strerror or error}") from None


def _stream(given_text: str) -> Object:
    named = _NAMED.match(given_text)
    name, repo = (named[1], named[2]) if named else ("", given_text)
    repo, _, branch = repo.partition("#")
    if not repo:
        raise Refused(f"{given_text!r}: a repository must be NAME=ADDRESS or NAME=ADDRESS#BRANCH")
    last = re.split(r"[/:]", repo.rstrip("/"))[-1]
    return {
        "name": name or last.removesuffix(".git"),
        "repo": repo,
        "branch": branch,
        "config_path": schema.CONFIG,
    }


def _barriers(given: Iterable[str]) -> Iterable[Object]:
    for given_text in given:
        name, sign, phase = (part.strip() for part in given_text.partition("="))
        if not sign or not name or not phase:
            raise Refused(f"{given_text!r}: a barrier must be NAME=PHASE")
        described = f"All workstreams must complete {phase} before any continues"
        yield {"name": name, "phase": phase, "description": described}
