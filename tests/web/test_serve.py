"""The app as a web page: who may come in, what a tab can do, and what is left when it is closed."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("textual_serve")

from tests.conftest import Run  # noqa: E402
from tests.web.served import LIMIT, Served, alive, serving, wait_for, without_tour  # noqa: E402

TOKEN = "a-token-of-the-test"


@pytest.fixture
def served(environment: dict[str, str], work: Path) -> Iterator[Served]:
    without_tour(work)
    secrets = {"AWS_SECRET_ACCESS_KEY": "s3cret", "HF_TOKEN": "s3cret", "TRITON_PREP_TOKEN": TOKEN}
    with serving({**environment, **secrets}) as one:
        yield one


def client(story: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as web:
            await story(web)

    asyncio.run(asyncio.wait_for(run(), 2 * LIMIT))


async def status(web: Any, url: str, **headers: str) -> int:
    async with web.get(url, headers=headers, allow_redirects=False) as answer:
        return int(answer.status)


@asynccontextmanager
async def tab(web: Any, served: Served) -> Any:
    """A page and its websocket, as the browser opens them."""
    assert await status(web, served.link) == 303
    origin = served.address.rstrip("/")
    async with web.ws_connect(f"{origin.replace('http', 'ws')}/ws?width=100&height=30", origin=origin) as socket:
        yield socket


async def until_shown(socket: Any, text: str) -> None:
    seen = b""
    while text.encode() not in seen:
        message = await asyncio.wait_for(socket.receive(), LIMIT)
        assert message.type == aiohttp.WSMsgType.BINARY, f"{message}: {seen[-200:]!r}"
        seen += message.data


async def send_keys(socket: Any, keys: str) -> None:
    await socket.send_str(json.dumps(["stdin", keys]))


def test_only_the_printed_link_comes_in(served: Served) -> None:
    async def story(web: Any) -> None:
        assert served.address.startswith("http://127.0.0.1:") and served.token == TOKEN
        for path in ("", "?token=", "?token=wrong", "static/js/textual.js", "ws", "ws?token=ÿ", "download/x"):
            assert await status(web, served.address + path) == 403, path
        assert await status(web, served.link) == 303  # the token leaves the address bar for a cookie
        async with web.get(served.address) as page:
            text = await page.text()
            assert page.status == 200
            assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert "http" not in text.replace("https:", "") and TOKEN not in text  # nothing is fetched from elsewhere
        assert await status(web, served.address + "static/js/textual.js") == 200
        assert await status(web, served.address + "ws", Origin="http://elsewhere.example") == 403

    client(story)


def test_without_a_token_only_this_machine_s_own_names_are_served(environment: dict[str, str]) -> None:
    async def story(web: Any) -> None:
        assert await status(web, served.address) == 200
        assert await status(web, served.address, Host="rebound.example") == 403
        assert await status(web, served.address + "ws", Origin="http://rebound.example") == 403

    with serving(environment, "--no-token") as served:
        client(story)


def test_a_tab_takes_a_quiz_grades_and_leaves_nothing_behind(served: Served, work: Path) -> None:
    async def story(web: Any) -> None:
        async with tab(web, served) as socket:
            await until_shown(socket, "Start here")
            app = served.below()[0]
            inherited = Path(f"/proc/{app}/environ").read_bytes()
            assert b"PATH=" in inherited and b"s3cret" not in inherited and TOKEN.encode() not in inherited
            await send_keys(socket, "\r")
            await until_shown(socket, "One launch")
            await send_keys(socket, "nn")
            await until_shown(socket, "What does kernel")
            await send_keys(socket, "1")
            await until_shown(socket, "[indeed]")
            await send_keys(socket, "\x10vector")  # the palette
            await until_shown(socket, "m01.exercise.vector-add")
            await send_keys(socket, "\x1b[B\r")
            await until_shown(socket, "Task")
            (work / "01-tiny" / "vector_add.py").write_text("# fake: passed\n")
            await send_keys(socket, "g")
            await until_shown(socket, "n=1000")
            assert len(served.below()) >= 2  # the grader has started
        await asyncio.to_thread(wait_for, lambda: not served.below(), "the tab's processes end")

    client(story)
    with sqlite3.connect(work / ".triton-prep" / "progress.sqlite3") as progress:
        passed = {row[0] for row in progress.execute("SELECT item FROM attempt WHERE correct")}
    assert {"m01.quiz.a", "m01.exercise.vector-add"} <= passed


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_no_tab_outlives_the_server(served: Served, end: signal.Signals) -> None:
    async def story(web: Any) -> None:
        async with tab(web, served) as socket:
            await until_shown(socket, "Start here")
            left = served.below()
            served.process.send_signal(end)
            await asyncio.to_thread(wait_for, lambda: not any(map(alive, left)), "the tab's processes end")
            await asyncio.to_thread(served.process.wait, LIMIT)

    client(story)


def test_options_that_would_open_the_machine_are_refused(command: Run) -> None:
    assert command("serve", "--host", "0.0.0.0", "--no-token").returncode == 2
    short = command("serve", "--token", "short")
    assert short.returncode == 2 and "16 characters" in short.stderr


def test_a_taken_port_is_said(served: Served, environment: dict[str, str]) -> None:
    port = served.address.rstrip("/").rpartition(":")[2]
    again = subprocess.run(
        [sys.executable, "-m", "tutor", "serve", "--port", port],
        env=environment, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert again.returncode == 3 and "--port takes another" in again.stderr
