"""`serve`: what is wrong with the options is said before anything listens."""

from __future__ import annotations

from pathlib import Path

from tutor.commands.terminal import CANNOT, USAGE, Stop

SHORTEST = 16


def serve(port: int, host: str, token: str | None, no_token: bool, folder: Path | None) -> int:
    """Until Ctrl-C. Raises Stop for options that cannot be, and when the port is taken."""
    from tutor.workspace import default_workspace

    try:
        from tutor.web.gate import on_loopback
        from tutor.web.server import Place, new_token
        from tutor.web.server import serve as listen
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("tutor"):
            raise
        raise Stop(f"{error.name} is not installed. pip install textual-serve adds it.", CANNOT) from error
    if no_token and (token or not on_loopback(host)):
        raise Stop("--no-token goes with 127.0.0.1 only, and without --token: the app can run programs as you.", USAGE)
    if token is not None and len(token) < SHORTEST:
        raise Stop(f"--token: at least {SHORTEST} characters, or leave it out and a new one is made.", USAGE)
    workspace = (folder or default_workspace()).expanduser().absolute()
    try:
        listen(workspace, Place(host, port, None if no_token else token or new_token()))
    except OSError as error:
        raise Stop(
            f"{host}:{port} cannot be listened on: {error.strerror or error}. --port takes another.", CANNOT
        ) from error
    return 0
