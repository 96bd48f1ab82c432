"""Settings: who you are here, tokens, how long letters are kept, who is told."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from starlette.responses import Response

from redrive.console.pages import purge
from redrive.console.visit import Visit, act, page
from redrive.core.access import Role
from redrive.core.errors import ConfigError
from redrive.triage import access, alerts
from redrive.triage.access import RIGHTS, Issued

EXPIRIES = (
    ("30d", "30 days"),
    ("1d", "a day"),
    ("7d", "a week"),
    ("90d", "90 days"),
    ("365d", "a year"),
    ("", "never"),
)
TOKENS = 200  # shown


@page("/settings", "settings")
async def _show(visit: Visit) -> Response:
    return await _settings(visit)


@act("/settings/tokens", "token_issue", may="tokens")
async def _issue(visit: Visit) -> Response:
    """Make a token, and show its secret in this answer: the one time that it is there to be seen."""
    form = visit.form
    try:
        role = _role(form.get("role", ""))
        name, expires_in = form.get("name", "").strip(), form.get("expires_in", "").strip()
        issued = await access.issue(visit.desk, name, role=role, expires_in=expires_in or None)
    except ConfigError as error:
        return await _settings(visit, mistakes=error.mistakes)
    return await _settings(visit, issued=issued)


@act("/settings/tokens/{token_id}/revoke", "token_revoke", may="tokens")
async def _revoke(visit: Visit) -> Response:
    token = await access.revoke(visit.desk, visit.part("token_id"))
    return visit.go(visit.url("settings"), said=f"The token of {token.name} is revoked: it opens nothing any more.")


@act("/settings/alerts/test", "alerts_test", may="notifiers")
async def _test(visit: Visit) -> Response:
    """Send every notifier a test, and say on this page what came of it."""
    tried = await alerts.test(visit.desk, visit.service.notifiers)
    return await _settings(visit, tried={one.place: one.why for one in tried})


async def _settings(
    visit: Visit,
    *,
    issued: Issued | None = None,
    mistakes: Sequence[str] = (),
    tried: Mapping[str, str] | None = None,
) -> Response:
    tokens = await access.tokens(visit.desk) if visit.caller.may("tokens") else ()
    return visit.render(
        "settings.html",
        status=HTTPStatus.BAD_REQUEST if mistakes else HTTPStatus.OK,
        rights=[name for name in RIGHTS if visit.caller.may(name)],
        tokens=tokens[:TOKENS],
        left_out=len(tokens) - len(tokens[:TOKENS]),
        issued=issued,
        mistakes=mistakes,
        # The first token ends the time in which nobody needs one: it should be able to make others.
        typed={"name": "", "role": Role.VIEWER if tokens else Role.ADMIN, "expires_in": "30d", **visit.form},
        roles=[*Role],
        expiries=EXPIRIES,
        rules=visit.service.retention,
        notifiers=visit.service.notifiers,
        tried=tried,
    )


def _role(given: str) -> Role:
    try:
        return Role(given)
    except ValueError:
        raise ConfigError(f"role: expected one of {', '.join(Role)}, got {given!r}") from None


routes = [_show, _issue, _revoke, _test, *purge.routes]
