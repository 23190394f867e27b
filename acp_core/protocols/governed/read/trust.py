"""What a run's configuration lets run or be asked, and whether a human has allowed it here.

A configuration comes with a repository. Its hooks, and the services that it names by an address of
its own, are used only after a human has seen and allowed them; what was allowed is remembered by
its content, in the user's state folder.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, Programs, decode, objects

_LARGEST = 4 << 20  # bytes of a script


def asked(config: Object) -> list[str]:
    """What is to be allowed, a line each; empty where nothing is."""
    lines, programs = [], decode(Programs, config)
    for phase, hooks in sorted(programs.hooks.items()):
        for hook in hooks:
            what = clean_line(hook.url, 500) or " ".join(hook.command)
            lines.append(clean_line(f"hook {phase}, {hook.name}: {what}", 600))
    for name, runtime in sorted(programs.runtimes.items()):
        if runtime.base_url:
            key = f", which is sent the key in {runtime.auth_env}" if runtime.auth_env else ""
            lines.append(clean_line(f"runtime {name}: the service at {runtime.base_url}{key}", 600))
    return lines


def fingerprint(root: Path, config: Object) -> str:
    """What is to be allowed, with the scripts of the repository that it runs, as a digest."""
    scripts: dict[str, str] = {}
    for hooks in decode(Programs, config).hooks.values():
        for hook in hooks:
            for word in hook.command:
                path = schema.inside(root, word)
                if path is not None and path.is_file():
                    scripts[word] = _digest(path)
    services = {
        name: [runtime.get("base_url"), runtime.get("auth_env"), runtime.get("provider")]
        for name, runtime in objects(config.get("runtimes")).items()
        if runtime.get("base_url")
    }
    content = {"hooks": config.get("hooks"), "services": services, "scripts": scripts}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def is_trusted(root: Path) -> bool:
    """Whether what the configuration asks for, as it stands, was allowed."""
    config = schema.read_object(root / schema.CONFIG).value
    if not asked(config):
        return True
    known = schema.read_object(trusted_file()).value
    return known.get(os.path.realpath(root)) == fingerprint(root, config)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bounded(path, _LARGEST)).hexdigest()
    except Unreadable as error:
        return error.reason


def trusted_file() -> Path:
    return state_folder() / "governed" / "trusted-runs.json"
