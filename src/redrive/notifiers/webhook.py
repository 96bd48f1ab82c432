"""A webhook: a URL of a chat service, or of anything else that takes what Slack takes."""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Final

from redrive.core.alert import Alert
from redrive.core.errors import ConfigError, MissingExtra, NotifierError
from redrive.core.excerpt import excerpt
from redrive.core.printable import printable
from redrive.core.url import mask_path
from redrive.notifiers.address import Address, is_public
from redrive.notifiers.slack import slack_body

try:
    import httpx
except ImportError as error:
    raise MissingExtra("alerts.webhook", extra="httpx") from error

EXPECTED: Final = "alerts.webhook: expected a URL such as https://hooks.slack.com/services/…"
_AT_ONCE: Final = 20  # more in one message are hard to read
_PATIENCE: Final = 10.0  # seconds
_ANSWER: Final = 300  # bytes of an answer that are shown


class WebhookNotifier:
    """One URL, which is a secret: no message, no log and no `place` has more of it than its host.

    Unless `allow_private`, its name must lead to addresses on the internet, all of them, and only one that was looked
    at is called: nobody can point us at this machine or its network. Redirects are not followed, and proxies of the
    environment not asked. Telling twice sends two messages. Raises `ConfigError` for a URL that is none.
    """

    name = "webhook"
    at_once = _AT_ONCE

    def __init__(
        self,
        url: str,
        *,
        repeat_every: timedelta | None = None,
        allow_private: bool = False,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        try:
            self._address = Address.of(url)
        except ValueError:
            raise ConfigError(f"{EXPECTED}, got another one") from None
        self.repeat_every = repeat_every
        self.place = f"{mask_path(url)} ({hashlib.sha256(url.encode()).hexdigest()[:8]})"
        self._allow_private = allow_private
        self._labels = dict(labels or {})

    async def tell(self, alerts: Sequence[Alert]) -> None:
        body = slack_body(alerts, labels=self._labels)
        host = self._address.host
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._post(await self._checked(), body)
        except TimeoutError:
            raise NotifierError(f"no answer from {host} within {_PATIENCE:g} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            why = self._hidden(f"{type(error).__name__}: {error}")
            raise NotifierError(f"no answer from {host}: {why}") from None

    async def aclose(self) -> None:
        """Nothing stays open between two calls."""

    async def _checked(self) -> list[str]:
        """The addresses of the host. Raises `NotifierError` if one of them is nobody's to call from here."""
        host, port = self._address.host, self._address.port
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [*dict.fromkeys(str(one[4][0]) for one in found)]
        private = [] if self._allow_private else [address for address in addresses if not is_public(address)]
        if private:
            raise NotifierError(
                f"{host} leads to {private[0]}, which is not on the internet; alerts.allow_private = true allows it"
            )
        return addresses

    async def _post(self, addresses: Sequence[str], body: bytes) -> None:
        """Send it to the first address that can be reached."""
        async with httpx.AsyncHTTPTransport(verify=self._trust, trust_env=False) as transport:
            for number, address in enumerate(addresses, 1):
                try:
                    response = await transport.handle_async_request(self._request(address, body))
                except httpx.ConnectError:
                    if number == len(addresses):
                        raise
                    continue
                await self._read(response)
                return

    def _request(self, address: str, body: bytes) -> httpx.Request:
        """The request as the host's own, whichever of its addresses takes it."""
        there = self._address
        is_usual = there.port == {"http": 80, "https": 443}[there.scheme]
        host = f"[{there.host}]" if ":" in there.host else there.host
        numbers = f"[{address}]" if ":" in address else address
        return httpx.Request(
            "POST",
            f"{there.scheme}://{numbers}:{there.port}{there.target}",
            content=body,
            headers={
                "Host": host if is_usual else f"{host}:{there.port}",
                "Content-Type": "application/json",
                "User-Agent": "redrive",
                **there.login,
            },
            extensions={"sni_hostname": there.host},
        )

    async def _read(self, response: httpx.Response) -> None:
        if response.is_success:
            await response.aclose()
            return
        said = await _beginning(response)
        words = self._hidden(printable(excerpt(said.decode(errors="replace"), limit=_ANSWER)))
        answered = f"{self._address.host} answered {response.status_code}"
        follows = "; redirects are not followed" if response.is_redirect else ""
        told = response.headers.get("retry-after")
        raise NotifierError(f"{answered}: {words}{follows}" if words else f"{answered}{follows}", retry_after=told)

    def _hidden(self, text: str) -> str:
        """What a server says may repeat what it was asked."""
        target = self._address.target
        return text.replace(target, "/***") if len(target) > 1 else text

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context()


async def _beginning(response: httpx.Response) -> bytes:
    """What an answer begins with; however long it is, no more is read."""
    said = b""
    try:
        async for chunk in response.aiter_bytes(_ANSWER):
            said += chunk
            if len(said) >= _ANSWER:
                break
    finally:
        await response.aclose()
    return said
