"""How an agent is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acp_core.protocols.wire.network.links import is_loopback
from acp_core.protocols.wire.schema import MAX_MESSAGE, Json
from acp_core.protocols.wire.write.keep import Retention

if TYPE_CHECKING:
    from acp_core.protocols.wire.bridge.setup import BridgeSetup
    from acp_core.protocols.wire.conduct.answering.setup import Setup


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of everything one agent bears."""

    message: int = MAX_MESSAGE  # bytes of an envelope
    queue: int = 50_000  # frames that wait for one peer
    peers: int = 256  # that are known
    streams: int = 4_000  # open /stream connections
    connections: int = 5_000  # HTTP connections
    address: int = 256  # HTTP connections from one address of another machine
    head_seconds: float = 15.0  # for the head of a request to arrive
    unread: int = 256  # frames of one peer that are not yet on the disk
    body_seconds: float = 30.0  # for the whole body of a request to arrive
    hello_seconds: float = 10.0  # for a peer's card to arrive
    frames: int = 10_000  # a second from one peer; beyond that it is read more slowly


@dataclass(frozen=True, slots=True)
class Config:
    """What an agent is called, where it listens, and what it trusts.

    Attributes:
        port, http_port: 0 lets the system choose; None is the place of last time, else the usual
            one, else the next that is free.
        tcp_port: where peers are taken over TCP; None: nowhere.
        stdio: whoever started the process is a peer, over standard input and output.
        children: programs to be run as peers, over their standard input and output.
        relay: the HTTP address of a relay, where peers reach the agent by it.
        relay_key: what that relay wants to see before it opens a room.
        advertise: say on the local network that the agent is there, and hear of others.
        advertise_token: with the token, so that everybody there can connect.
        interface: the address of the interface for that; "" is the usual one.
        secret: shared with all peers, for the HMAC.
        identity: the key file, where messages are signed with Ed25519.
        join: links of peers to which a connection is kept.
        webhook_hosts: where events may be posted to; this machine when empty.
        hosts: further names under which the HTTP interface is asked for.
        tls: the files with the certificate and the key with which HTTP is served.
        open_loopback: every account of this machine is taken for the owner, without a token.
        on_message: the program that answers, where one does.
        bridge: the folder of which it tells, where it is a bridge.
        sync: "full" or "normal", see `Database`.
    """

    name: str
    description: str = ""
    skills: list[Json] = field(default_factory=list)
    host: str = "127.0.0.1"
    port: int | None = None
    http_port: int | None = None
    tcp_port: int | None = None
    stdio: bool = False
    children: tuple[tuple[str, ...], ...] = ()
    relay: str | None = None
    relay_key: str | None = None
    advertise: bool = False
    advertise_token: bool = False
    interface: str = ""
    secret: str | None = None
    identity: str | None = None
    join: tuple[str, ...] = ()
    webhook_hosts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    open_loopback: bool = False
    tls: tuple[str, str] | None = None
    on_message: Setup | None = None
    bridge: BridgeSetup | None = None
    sync: str = "full"
    limits: Limits = field(default_factory=Limits)
    retention: Retention = field(default_factory=Retention)

    @property
    def open(self) -> bool:
        """Whether others than this machine can reach it."""
        return not is_loopback(self.host)

    @property
    def token_needed(self) -> bool:
        """Whether the owner has to show a token, as everybody has to who is not this machine."""
        return self.open or not self.open_loopback

    @property
    def plain_host(self) -> str:
        """Where peers are taken without encryption: with TLS, on this machine alone."""
        return "127.0.0.1" if self.tls else self.host

    @property
    def bindings(self) -> tuple[str, ...]:
        """The bindings that are served, as a card names them."""
        asked = {
            "stdio": self.stdio or bool(self.children),
            "tcp": self.tcp_port is not None,
            "http-relay": self.relay is not None,
        }
        return ("ws-p2p", "http-sse", *(name for name, there in asked.items() if there))
