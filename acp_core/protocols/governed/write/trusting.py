from __future__ import annotations

import json
import os
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.locked import locked_folder
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.trust import asked, fingerprint, trusted_file


def trust(root: Path) -> list[str]:
    """Allow what the configuration asks for, as it stands; returns what that is.

    Raises:
        OSError: it cannot be remembered.
    """
    config = schema.read_object(root / schema.CONFIG).value
    place = trusted_file()
    modes.private_folder(place.parent)
    with locked_folder(str(place.parent)):
        known = schema.read_object(place).value
        known[os.path.realpath(root)] = fingerprint(root, config)
        atomic.replace(place, (json.dumps(known, indent=1) + "\n").encode())
    return asked(config)
