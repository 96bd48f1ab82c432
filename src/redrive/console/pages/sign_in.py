"""Sign in with a token, and out again."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from redrive.console import render, session
from redrive.console.origin import demand_own_page
from redrive.console.visit import form_of
from redrive.door.guard import recognised


async def _ask(request: Request) -> Response:
    return _form(request, next_page=request.query_params.get("next", ""))


async def _sign_in(request: Request) -> Response:
    demand_own_page(request)
    form = await form_of(request)
    secret = form.get("token", "").strip()
    if await recognised(request.app.state.service, secret) is None:
        said = "This token opens nothing: it is mistyped, has expired, or was revoked."
        return _form(request, next_page=form.get("next", ""), said=said, status=HTTPStatus.UNAUTHORIZED)
    response = RedirectResponse(_inside(request, form.get("next", "")), HTTPStatus.SEE_OTHER)
    session.begin(response, request, secret)
    return response


async def _sign_out(request: Request) -> Response:
    demand_own_page(request)
    response = RedirectResponse(render.url(request, "sign_in"), HTTPStatus.SEE_OTHER)
    session.end(response, request)
    return response


def _form(request: Request, *, next_page: str, said: str = "", status: HTTPStatus = HTTPStatus.OK) -> Response:
    # A link elsewhere brings no cookie along, and nobody should sign in twice; a link of our own does.
    is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"
    go_on = _inside(request, next_page) if is_from_elsewhere else ""
    facts = {"next_page": next_page, "mistake": said, "go_on": go_on}
    return render.render(request, "sign_in.html", facts, now=request.app.state.service.clock.now(), status=status)


def _inside(request: Request, address: str) -> str:
    """The page to go on to: one of ours, whatever a link from elsewhere says."""
    root = f"{request.scope.get('root_path', '')}/"
    if address.startswith(root) and not address.startswith("//") and "\\" not in address and address.isprintable():
        return address
    return root


routes = [
    Route("/sign-in", _ask, methods=["GET"], name="sign_in"),
    Route("/sign-in", _sign_in, methods=["POST"], name="signing_in"),
    Route("/sign-out", _sign_out, methods=["POST"], name="sign_out"),
]
