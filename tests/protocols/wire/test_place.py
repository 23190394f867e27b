"""The command that shows an agent on another machine."""

from __future__ import annotations

import pytest

from acp_core.protocols.wire.conduct.agent.place import Running


@pytest.mark.parametrize(
    ("link", "http", "command"),
    [
        ("acp://10.0.0.2:7801/tok_1", "http://10.0.0.2:7901", "acp acp://10.0.0.2:7801/tok_1"),
        ("acp://[::1]:7801/tok_1", "http://[::1]:7901", "acp acp://[::1]:7801/tok_1"),
        (  # a link does not say where HTTP is: it has it looked for at the usual place
            "acp://10.0.0.2:7801/tok_1",
            "http://10.0.0.2:8000",
            "ACP_WIRE_TOKEN=tok_1 acp http://10.0.0.2:8000",
        ),
    ],
)
def test_the_command_finds_http_wherever_it_is(link: str, http: str, command: str) -> None:
    assert Running("A", 1, link, http, "own").shown_by == command
