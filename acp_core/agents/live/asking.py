"""Questions that a participant asks a person: asked and answered where requests for permission are.

A question stays open while the process that asked it lives, so that a program which waits only for
a while can ask again and gets the answer that came in between.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Sequence

from acp_core.agents.live import answers
from acp_core.agents.live.answers import Answer, OpenRequest
from acp_core.agents.live.requests import AgentQuestion, Choice, PermissionRequest
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused

_LOOK = 0.25  # seconds between two looks whether somebody answered
_MOST = 20
"""Questions of one process that may be open at the same time."""


class Questions:
    """The open questions of this process.

    Args:
        stopping: is set when the process is about to end: then nothing waits any more.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str, str, tuple[str, ...]], OpenRequest] = {}

    def ask(
        self, folder: str, participant: str, text: str, choices: Sequence[str], seconds: float
    ) -> Answer | None:
        """Ask a person, or go on waiting where the same question is open.

        Args:
            folder: the collaboration.
            participant: who asks.
            text: the question.
            choices: answers that it offers; a person can always write another one.
            seconds: how long to wait.

        Returns:
            The answer, whose message is "" where the person declined; None where there is none yet.

        Raises:
            Refused: too many others are open.
            OSError: the question cannot be written.
        """
        key = (folder, participant, text, tuple(choices))
        with self._lock:
            opened = self._open.get(key)
            if opened is None:
                if len(self._open) >= _MOST:
                    raise Refused("too many of your questions are open: wait for their answers")
                question = AgentQuestion(text, choices=tuple(map(Choice, choices)))
                request = PermissionRequest(questions=(question,))
                why = "it is a question to a person"
                opened = answers.publish(folder, participant, request, attended=False, why=why)
                self._open[key] = opened
        given = self._wait(opened, seconds)
        if given is not None:
            with self._lock:
                if self._open.pop(key, None) is not None:
                    answers.close(opened, given)
        return given

    def _wait(self, opened: OpenRequest, seconds: float) -> Answer | None:
        deadline = time.monotonic() + seconds
        while (given := answers.taken(opened, utc_now())) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self._stopping.wait(min(_LOOK, left)):
                return None
        return given

    def close(self) -> None:
        """Take back all open questions: nobody waits for their answers any more."""
        with self._lock:
            while self._open:
                _, opened = self._open.popitem()
                with contextlib.suppress(OSError):
                    answers.close(opened, None)
