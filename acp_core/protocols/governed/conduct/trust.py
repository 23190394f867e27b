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

from acp_core.files import atomic, modes
from acp_core.files.locked import locked_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Object, items, obj, objects, strings, text

_LARGEST = 4 << 20  # bytes of a script


def asked(config: Object) -> list[str]:
    """What is to be allowed, a line each; empty where nothing is."""
    found = []
    for phase, hooks in sorted(obj(config, "hooks").items()):
        for hook in items({"": hooks}, ""):
            what = text(hook, "url", 500) or " ".join(_words(hook))
            found.append(clean_line(f"hook {phase}, {text(hook, 'name', 80)}: {what}", 600))
    for name, runtime in sorted(objects(config.get("runtimes")).items()):
        base, key = text(runtime, "base_url", 500), text(runtime, "auth_env", 200)
        if base:
            sent = f", which is sent the key in {key}" if key else ""
            found.append(clean_line(f"runtime {name}: the service at {base}{sent}", 600))
    return found


def fingerprint(root: Path, config: Object) -> str:
    """What is to be allowed, with the scripts of the repository that it runs, as a digest."""
    scripts: dict[str, str] = {}
    for hooks in obj(config, "hooks").values():
        for hook in items({"": hooks}, ""):
            for word in _words(hook):
                path = schema.inside(root, word)
                if path is not None and path.is_file():
                    scripts[word] = _digest(path)
    services = {
        name: [runtime.get("base_url"), runtime.get("auth_env"), runtime.get("provider")]
        for name, runtime in objects(config.get("runtimes")).items()
        if runtime.get("base_url")
    }
    told = {"hooks": config.get("hooks"), "services": services, "scripts": scripts}
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def is_trusted(root: Path) -> bool:
    """Whether what the configuration asks for, as it stands, was allowed."""
    config = schema.read_object(root / schema.CONFIG).value
    if not asked(config):
        return True
    known = schema.read_object(_place()).value
    return known.get(os.path.realpath(root)) == fingerprint(root, config)


def trust(root: Path) -> list[str]:
    """Allow what the configuration asks for, as it stands; returns what that is.

    Raises:
        OSError: it cannot be remembered.
    """
    config = schema.read_object(root / schema.CONFIG).value
    place = _place()
    modes.private_folder(place.parent)
    with locked_folder(str(place.parent)):
        known = schema.read_object(place).value
        known[os.path.realpath(root)] = fingerprint(root, config)
        atomic.replace(place, (json.dumps(known, indent=1) + "\n").encode())
    return asked(config)


def _words(hook: Object) -> list[str]:
    command = hook.get("command")
    return [command] if isinstance(command, str) else strings(hook, "command")


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_bounded(path, _LARGEST)).hexdigest()
    except Unreadable as error:
        return error.reason


def _place() -> Path:
    return state_folder() / "governed" / "trusted-runs.json"
