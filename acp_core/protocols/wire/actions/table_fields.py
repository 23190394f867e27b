"""Inputs that several commands for agents on the network have."""

from __future__ import annotations

from acp_core.model.action_spec import Field, Kind
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE
from acp_core.protocols.wire.network.secrets import seen

ASKED = (
    (0, "done"),
    (1, "the agent refused; the error says why"),
    (2, "invalid input, or the agent cannot be reached; the error says why"),
    (130, "interrupted"),
)
"""Exit codes of a command that asks an agent."""
WHOM = Field(
    "agent", "Agent", "The agent: its name on this machine, http://HOST:PORT, or acp://HOST:PORT/TOKEN.",
    required=True, position=True, form=False,
)  # fmt: skip
TOKEN = Field(
    "token", "Token",
    f"The owner's token, if the agent requires one. {seen(TOKEN_VARIABLE)}",
    form=False,
)  # fmt: skip
CA = Field(
    "ca", "Authority", "Also trust the certificates in this file.", Kind.FILE,
    form=False, optional=True,
)  # fmt: skip
TLS = (
    Field("tls_cert", "Certificate", "Certificate file for HTTPS.",
          Kind.FILE, optional=True),
    Field("tls_key", "Its key", "Key file of the certificate.", Kind.FILE,
          optional=True),
)  # fmt: skip
TASK = Field(
    "task", "Task", "The task's id.", Kind.CHOICE, required=True, position=True,
    metavar="TASK",
)  # fmt: skip
HOST = Field(
    "host", "Host", "Address to listen on; the default is reachable only from this machine.",
    default="127.0.0.1",
)  # fmt: skip
PORT = Field(
    "port", "Port", "Port for peers (0: any free port) [default: the last one, or 7801].",
    Kind.NUMBER, least=0, most=65535,
)  # fmt: skip
HTTP_PORT = Field(
    "http_port", "Port for HTTP", "Port for HTTP (0: any free port) [default: 100 above the other].",
    Kind.NUMBER, least=0, most=65535,
)  # fmt: skip
ALLOW_HOST = Field(
    "allow_host", "Further names", "Further host name to accept.", Kind.LIST,
    metavar="NAME",
)  # fmt: skip
