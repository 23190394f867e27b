"""The OpenAPI document that an agent serves."""

from __future__ import annotations

import json
import signal
import tempfile
import urllib.request
from pathlib import Path

from tests.golden.capture import as_text
from tests.golden.normal import Normal
from tests.golden.sandbox import Sandbox
from tests.support import forked

NAME = "openapi.json"
_ANY_PORT = ("--port", "0", "--http-port", "0")


def text() -> str:
    """The document of an agent that is started for it."""
    with tempfile.TemporaryDirectory(prefix="acp-golden-") as place:
        sandbox = Sandbox(Path(place) / "sandbox")
        words = ("agent", "--name", "golden", "--json", *_ANY_PORT)
        started = forked.start(words, sandbox.work, sandbox.env)
        try:
            url = json.loads(started.line())["http_url"]
            with urllib.request.urlopen(f"{url}/openapi.json", timeout=forked.PATIENCE) as answer:
                document = json.load(answer)
        finally:
            started.end(signal.SIGTERM)
        version = sandbox.acp("--version").stdout.split()[-1]
        return as_text(Normal({str(sandbox.root): "<sandbox>"}, version, {}).value(document))
