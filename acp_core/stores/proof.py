"""Who asks another host for something that decides, approves or allows: proven, or it does not count.

A git repository proves nothing: whoever can push can write any name. So such a request carries an
ssh signature of its own (``ssh-keygen -Y sign``) over everything in it, the collaboration and the
host included, and counts if its key is one that the asked host's owner listed. PostgreSQL names the
account of the session, which the server itself wrote down; that account must be listed. Signing the
request, and not the commit that brought it, keeps the proof where commits are pruned or fetched
without those before them. Standard library only.

Source: design of shared stores, section 10, 4.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.stores.address import POSTGRES, Address
from acp_core.stores.engine import Asked

NAMESPACE = "acp-request"
"""What a signature is for: one that was made for anything else is none for a request."""
LONGEST = 8_000  # characters of a signature
_PATIENCE = 30.0
_NAME = re.compile(r"[A-Za-z0-9._-][A-Za-z0-9._@-]{0,99}")
_KIND = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa)-[A-Za-z0-9@.-]{1,60}")
_KEY = re.compile(r"[A-Za-z0-9+/]{16,4000}={0,3}")


class Listed(NamedTuple):
    """Somebody whose decisions count on this host: a database account, or a name with an ssh key."""

    name: str
    key: str = ""


def listed() -> tuple[Listed, ...]:
    """Whom the owner of this host lets decide from other hosts; nobody by default.

    Raises:
        Refused: an entry of the settings cannot be read.
    """
    found = []
    for text in _set().get("deciders", ()):
        words = str(text).split()
        if len(words) == 1 and _NAME.fullmatch(words[0]):
            found.append(Listed(words[0]))
        elif len(words) >= 3 and all(
            form.fullmatch(word) for form, word in zip((_NAME, _KIND, _KEY), words, strict=False)
        ):
            found.append(Listed(words[0], f"{words[1]} {words[2]}"))
        else:
            raise Refused(
                f"[share] deciders: {clean_line(str(text), 80)} is neither an account of the database nor a name "
                "with an ssh public key"
            )
    return tuple(found)


def proven(request: Asked, address: Address) -> str:
    """The name by which this host's owner lists who asks; "" where it is not proven, or not listed.

    Raises:
        Refused: the settings, or ssh-keygen, cannot be used.
    """
    known = listed()
    if address.engine == POSTGRES:
        return next((e.name for e in known if not e.key and e.name == request.proven), "")
    keys = [each for each in known if each.key]
    if not keys or not request.signature or len(request.signature) > LONGEST:
        return ""
    with tempfile.TemporaryDirectory(prefix="acp-proof-") as place:
        signature = Path(place, "signature")
        signature.write_text(request.signature, encoding="utf-8", errors="replace")
        for number, each in enumerate(keys):
            # One key a file: whose it is follows from the list alone, not from what is signed.
            allowed = Path(place, f"allowed-{number}")
            line = f'{each.name} namespaces="{NAMESPACE}" {each.key}\n'
            allowed.write_text(line, encoding="utf-8")
            words = [
                "verify",
                "-f",
                str(allowed),
                "-I",
                each.name,
                "-n",
                NAMESPACE,
                "-s",
                str(signature),
            ]
            if _run(words, words_of(request, address)).returncode == 0:
                return each.name
    return ""


def signed(request: Asked, address: Address) -> Asked:
    """The request with the signature of this account's key; as it is where the store itself proves who asks.

    Raises:
        Refused: no key is named in the settings, or it cannot be used without asking.
    """
    if address.engine == POSTGRES:
        return request
    key = str(_set().get("sign", ""))
    if not key:
        raise Refused(
            f"{request.host} follows only signed requests of this kind: name your ssh key in config.toml, as "
            'sign = "~/.ssh/id_ed25519" below [share]'
        )
    done = _run(
        ["sign", "-q", "-f", os.path.expanduser(key), "-n", NAMESPACE], words_of(request, address)
    )
    if done.returncode:
        why = clean_line(done.stderr.decode("utf-8", "replace"), 300) or "no reason given"
        raise Refused(f"the request cannot be signed with {clean_line(key, 200)}: {why}")
    return request._replace(signature=done.stdout.decode("ascii", "replace"))


def words_of(request: Asked, address: Address) -> bytes:
    """What is signed: the request, to which host, about which collaboration."""
    told = [NAMESPACE, 1, address.id, request.host, request.id, request.verb, request.participant,
            request.text, request.by, request.seconds]  # fmt: skip
    return json.dumps(told).encode()


def _run(words: Sequence[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run ssh-keygen, which asks nobody: a key that needs a passphrase must be in the agent.

    Raises:
        Refused: it is not installed, or does not end.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SSH_ASKPASS", "DISPLAY"))}
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", *words], input=given, capture_output=True, timeout=_PATIENCE, check=False,
            env=env | {"SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(
            f"ssh-keygen cannot be used ({error}): it is needed to prove who asks"
        ) from None


def _set() -> Mapping[str, Any]:
    try:
        return settings.load().share
    except settings.SettingsError as error:
        raise Refused(str(error)) from None
