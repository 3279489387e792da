"""`triton-prep serve`: the app in a browser. Loopback unless told otherwise, and a token in the link."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp_jinja2
from aiohttp import web
from textual_serve.server import Server, to_int

from tutor.web.gate import gate, on_loopback, say_headers
from tutor.web.session import BrowserSession

MOST_SESSIONS = 8  # each may hold a grader of some hundred megabytes
HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True)
class Place:
    host: str
    port: int
    token: str | None  # None: whoever can reach 127.0.0.1

    @property
    def link(self) -> str:
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost") else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/" + (f"?token={self.token}" if self.token else "")


def new_token() -> str:
    return secrets.token_urlsafe(24)


class CourseServer(Server):
    def __init__(self, workspace: Path, place: Place) -> None:
        super().__init__(
            str(workspace),
            host=place.host,
            port=place.port,
            title="triton-prep",
            templates_path=Path(__file__).resolve().parent,
        )
        self.place = place
        self.sessions: set[BrowserSession] = set()

    def initialize_logging(self) -> None:
        """None: an access log would hold the token."""

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(gate(self.place.token, self.place.port))
        app.on_response_prepare.append(say_headers)
        return app

    async def on_startup(self, app: web.Application) -> None:
        print(f"Open {self.place.link}", flush=True)
        if not on_loopback(self.place.host):
            print(
                "Whoever has this link can run programs as you. It is not encrypted: in a network that you do not\n"
                "trust, leave out --host and use ssh -L instead.",
                flush=True,
            )
        print("Ctrl-C stops it; closing a tab ends that tab's app. What you answered is kept.", flush=True)

    async def on_shutdown(self, app: web.Application) -> None:
        await asyncio.gather(*(session.stop() for session in tuple(self.sessions)), return_exceptions=True)

    @aiohttp_jinja2.template("page.html")
    async def handle_index(self, request: web.Request) -> dict[str, Any]:
        return {"font_size": max(6, min(to_int(request.query.get("fontsize", "16"), 16), 64)), "title": self.title}

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if len(self.sessions) >= MOST_SESSIONS:
            raise web.HTTPServiceUnavailable(text=f"503: {MOST_SESSIONS} tabs are open already; close one.\n")
        websocket = web.WebSocketResponse(heartbeat=HEARTBEAT_SECONDS)
        await websocket.prepare(request)

        async def close() -> None:
            await websocket.close()

        session = BrowserSession(
            self.command,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self.sessions.add(session)
        width, height = (to_int(request.query.get(name, ""), usual) for name, usual in (("width", 80), ("height", 24)))
        try:
            await session.start(width, height)
            # what does not follow the page's protocol ends the session
            with contextlib.suppress(AssertionError, AttributeError, LookupError, TypeError, ValueError):
                await self._process_messages(websocket, session)
        finally:
            await session.stop()
            self.sessions.discard(session)
            await websocket.close()
        return websocket


def serve(workspace: Path, place: Place) -> None:
    """Serves until Ctrl-C. Raises OSError when the port is taken or the host is not this machine's."""
    os.environ.pop("TRITON_PREP_TOKEN", None)
    CourseServer(workspace, place).serve()
