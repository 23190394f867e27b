"""Whose certificates are believed, and with which one is served (TLS).

Certificates of the usual public authorities are believed, or of those in ``SSL_CERT_FILE`` in their
place; and of the authority that `--ca` names.
"""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

import httpx

from acp_core.model.errors import Refused

VARIABLE = "SSL_CERT_FILE"
_more: list[str] = []


def also(file: str | None) -> None:
    """Believe the authorities in this file, too, from now on and everywhere in this process.

    Raises:
        Refused: it cannot be read, or holds no certificate.
    """
    if not file:
        return
    try:
        ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise Refused(f"--ca: {file}: {_reason(error)}") from None
    _more.append(file)


def context(url: str, own: str = "") -> ssl.SSLContext | bool:
    """What checks who answers at an address; False where nothing there is encrypted.

    Args:
        url: the address.
        own: the certificate file of an agent of this user, which is believed for what it is: it
            need not name this machine's loopback address.

    Raises:
        OSError: a file of certificates cannot be read.
    """
    if not url.startswith("https:"):
        return False
    if own:
        return _pinned(own)
    return _usual(os.environ.get(VARIABLE, ""), tuple(_more))


@lru_cache(maxsize=4)
def _usual(file: str, more: tuple[str, ...]) -> ssl.SSLContext:
    """Made once: that takes a while. ``file`` is what the environment names."""
    made = httpx.create_ssl_context()  # which reads SSL_CERT_FILE
    for each in more:
        made.load_verify_locations(each)
    return made


def _pinned(file: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=file)
    made.check_hostname = False
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return made


def check_pair(cert: str | None, key: str | None) -> tuple[str, str] | None:
    """The files with a certificate and its key, where an agent is to serve with them.

    Raises:
        Refused: one of them is missing, or they cannot be used.
    """
    if not cert and not key:
        return None
    if not cert or not key:
        raise Refused("--tls-cert and --tls-key require each other")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise Refused(f"--tls-cert, --tls-key: {cert}, {key}: {_reason(error)}") from None
    return os.path.abspath(cert), os.path.abspath(key)


def words(error: Exception) -> str:
    """Why a request failed, in words that say what to do about a certificate."""
    text = str(error) or type(error).__name__
    found = untrusted(error)
    if found:
        return f"its certificate is not trusted here ({found}): name the authority's file with --ca or {VARIABLE}"
    return f"{text}: it does not speak TLS" if "WRONG_VERSION_NUMBER" in text else text


def untrusted(error: Exception) -> str:
    """What is wrong with a certificate, where that is why a request failed; else ""."""
    cause: BaseException | None = error if isinstance(error, httpx.ConnectError) else None
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return str(cause.verify_message).rstrip(".")
        cause = cause.__cause__ or cause.__context__
    return ""


def _reason(error: Exception) -> str:
    told = error.strerror if isinstance(error, OSError) else None
    return told or getattr(error, "reason", None) or str(error) or type(error).__name__
