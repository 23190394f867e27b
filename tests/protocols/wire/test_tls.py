"""TLS: agents, bridges and relays serve with a certificate, and who asks them checks it."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from acp_core.protocols.wire.network import client
from tests.protocols.wire.certificates import Authority
from tests.protocols.wire.support import Process, acp, until
from tests.protocols.wire.teams import ANY_PORT, Member, relay


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def served(authority: Authority, *, name: str = "localhost", address: str = "127.0.0.1") -> Process:
    cert, key = authority.sign(name, address)
    return Process("A", *ANY_PORT, "--tls-cert", cert, "--tls-key", key)


def test_who_asks_checks_the_certificate_and_says_what_is_wrong_with_it(
    authority: Authority, tmp_path: Path
) -> None:
    with served(authority) as agent:
        assert agent.url.startswith("https://127.0.0.1:")
        elsewhere = {"ACP_STATE": str(tmp_path / "another"), "ACP_WIRE_TOKEN": agent.owner_token}
        code, said = acp("wire", "card", agent.url, **elsewhere)
        assert code == 2
        assert "its certificate is not trusted here (unable to get local issuer" in said
        assert "with --ca or SSL_CERT_FILE" in said
        assert (
            "A  ACP 0.8"
            in acp("wire", "card", agent.url, "--ca", str(authority.file), **elsewhere)[1]
        )
        by_variable = {**elsewhere, "SSL_CERT_FILE": str(authority.file)}
        assert "A  ACP 0.8" in acp("wire", "card", agent.url, **by_variable)[1]
        shown = acp("show", agent.url, **elsewhere)[1]
        assert "its certificate is not trusted here" in shown
        assert "cannot reach" not in shown
        assert "0 of 0 peers connected" in acp("show", agent.url, **by_variable)[1]
        plain = agent.url.replace("https", "http")
        assert acp("wire", "card", plain, **elsewhere)[0] == 2
        assert "/none.pem" in acp("wire", "card", agent.url, "--ca", "/none.pem", **elsewhere)[1]


def test_the_owner_asks_an_agent_of_this_machine_whatever_host_its_certificate_names(
    authority: Authority,
) -> None:
    with served(authority, name="agent.example", address="192.0.2.7") as agent:
        for place in ("A", agent.url):
            assert acp("wire", "peers", place)[0] == 0
        assert acp("status", agent.url)[0] == 0
        assert "192.0.2.7" not in acp("wire", "agents")[1]


def test_a_peer_joins_over_tls_and_the_link_that_is_given_is_encrypted(
    authority: Authority,
) -> None:
    with served(authority) as b:
        token = b.link.rpartition("/")[2]
        link = f"{b.url}/{token}"
        told = httpx.get(
            f"{b.url}/link",
            headers={"authorization": f"Bearer {b.owner_token}"},
            verify=ssl.create_default_context(cafile=str(authority.file)),
            trust_env=False,
        ).json()
        assert told["link"] == link
        with Process("C", *ANY_PORT, "--join", link, "--ca", str(authority.file)) as c:
            one = Member("C", c.url, c.pid)
            until(lambda: one.peer("A"), "the connection")
        with Process("D", *ANY_PORT, "--join", link) as d:
            other = Member("D", d.url, d.pid)
            until(
                lambda: "is not trusted here" in str(other.get("/peers")[0]["error"]), "the reason"
            )


def test_with_tls_what_is_not_encrypted_is_reached_from_this_machine_alone(
    authority: Authority,
) -> None:
    cert, key = authority.sign()
    options = ("--host", "0.0.0.0", "--tcp-port", "0", "--tls-cert", cert, "--tls-key", key)
    with Process("A", *ANY_PORT, *options) as agent:
        listening = _listening(agent.pid)
        ports = {urlsplit(link).port for link in (agent.link, agent.links["tcp"])}
        assert {address for address, port in listening if port in ports} == {"127.0.0.1"}
        assert ("0.0.0.0", urlsplit(agent.url).port) in listening


def _listening(pid: int) -> set[tuple[str, int]]:
    import psutil

    found = psutil.Process(pid).net_connections("tcp")
    return {(each.laddr.ip, each.laddr.port) for each in found if each.status == "LISTEN"}


def test_agents_meet_over_a_relay_with_tls(authority: Authority) -> None:
    cert, key = authority.sign()
    ca = ("--ca", str(authority.file))
    with relay("--port", "0", "--tls-cert", cert, "--tls-key", key) as url:
        assert url.startswith("https://")
        with Process("B", *ANY_PORT, "--relay", url, *ca) as b:
            link = b.links["relay"]
            assert link.startswith("acp+wss://")
            with Process("A", *ANY_PORT, "--join", link, *ca) as a:
                one = Member("A", a.url, a.pid)
                until(lambda: one.peer("B"), "the connection")


@pytest.mark.parametrize("options", [["--tls-cert", "x"], ["--tls-key", "x"]])
def test_what_cannot_be_served_with_is_said_in_one_line(options: list[str], tmp_path: Path) -> None:
    code, said = acp("agent", "--name", "A", *ANY_PORT, *options)
    assert (code, said) == (2, "error: --tls-cert and --tls-key require each other\n")
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    code, said = acp("agent", "--name", "A", "--tls-cert", str(broken), "--tls-key", str(broken))
    assert code == 2
    assert str(broken) in said
    assert said.count("\n") == 1


def test_why_a_request_failed_is_never_nothing() -> None:
    """Some errors of a network have no text of their own."""
    assert client.words(httpx.ReadTimeout("")) == "ReadTimeout"
    assert client.words(httpx.ConnectError("refused")) == "refused"
