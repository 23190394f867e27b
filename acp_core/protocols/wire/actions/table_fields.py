"""Inputs that several commands for agents on the network have."""

from __future__ import annotations

from acp_core.model.action_spec import Field, Kind
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE
from acp_core.protocols.wire.network.secrets import seen

ASKED = (
    (0, "done"),
    (1, "the agent refused, and says why"),
    (2, "invalid input, or the agent cannot be asked: one line says why"),
    (130, "interrupted"),
)
"""Exit codes of a command that asks an agent."""
WHOM = Field(
    "agent", "Agent", "Name the agent: its name here, http://HOST:PORT, or acp://HOST:PORT/TOKEN.",
    required=True, position=True, form=False,
)  # fmt: skip
TOKEN = Field(
    "token", "Token",
    f"Give the owner's token, where the agent asks for one. {seen(TOKEN_VARIABLE)}",
    form=False,
)  # fmt: skip
CA = Field(
    "ca", "Authority", "Believe certificates that are signed by one in this file, too.", Kind.FILE,
    form=False, optional=True,
)  # fmt: skip
TLS = (
    Field("tls_cert", "Certificate", "Serve HTTP with TLS, by the certificate in this file.",
          Kind.FILE, optional=True),
    Field("tls_key", "Its key", "Take the certificate's key from this file.", Kind.FILE,
          optional=True),
)  # fmt: skip
TASK = Field(
    "task", "Task", "Name the task by its id.", Kind.CHOICE, required=True, position=True,
    metavar="TASK",
)  # fmt: skip
HOST = Field(
    "host", "Host", "Listen at this address; the usual one is reached from this machine alone.",
    default="127.0.0.1",
)  # fmt: skip
PORT = Field(
    "port", "Port", "Listen for peers at this port (0: any; else 7801, or the one of last time).",
    Kind.NUMBER, least=0, most=65535,
)  # fmt: skip
HTTP_PORT = Field(
    "http_port", "Port for HTTP", "Listen for HTTP at this port (0: any; else 100 above the other).",
    Kind.NUMBER, least=0, most=65535,
)  # fmt: skip
ALLOW_HOST = Field(
    "allow_host", "Further names", "Answer under this further name of the host.", Kind.LIST,
    metavar="NAME",
)  # fmt: skip
