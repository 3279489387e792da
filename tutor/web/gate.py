"""Who may come in: a token in the link or in a cookie, or anyone on this machine; never another site's page."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

LOOPBACK = ("localhost", "127.0.0.1", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self'; connect-src 'self' ws: wss:; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
NO_ENTRY = "403: open the link that triton-prep serve printed; it carries the token.\n"


def on_loopback(host: str) -> bool:
    return host in LOOPBACK


def gate(token: str | None, port: int) -> Middleware:
    """A middleware for every address, the websocket's too. Without a token only loopback names are served."""
    cookie = f"triton-prep-{port}"

    def known(given: str | None) -> bool:
        return token is not None and given is not None and hmac.compare_digest(given.encode(), token.encode())

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _from_own_page(request):
            raise web.HTTPForbidden(text="403: asked for by the page of another site.\n")
        if token is None:
            # a name that resolves to 127.0.0.1 would let any page in the browser speak to this server
            if not on_loopback(_name(f"//{request.host}")):
                raise web.HTTPForbidden(text=f"403: open http://127.0.0.1:{port} instead.\n")
        elif request.path == "/" and known(request.query.get("token")):
            # out of the address bar, so that it is in no history and no screenshot
            answer = web.HTTPSeeOther("./")
            answer.set_cookie(cookie, token, httponly=True, samesite="Lax", path="/")
            raise answer
        elif not known(request.cookies.get(cookie)) and not known(request.query.get("token")):
            raise web.HTTPForbidden(text=NO_ENTRY)
        return await handler(request)

    return check


async def say_headers(request: web.Request, response: web.StreamResponse) -> None:
    """For `on_response_prepare`: refusals carry them too."""
    if request.path != "/ws":
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)


def _from_own_page(request: web.Request) -> bool:
    """A browser names the page that opens a websocket; a page of another site must not drive the app."""
    origin = request.headers.get(hdrs.ORIGIN)
    return origin is None or urlsplit(origin).netloc == request.host


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
