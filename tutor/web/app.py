"""The app of one browser tab: `python -m tutor.web.app WORKSPACE`, started by the server, on pipes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

LOOK_SECONDS = 1.0
PARTING_SECONDS = 10.0


def leave_with(server: int) -> None:
    """Ends this process once the server has gone, however it went: textual's web driver does not notice."""
    while os.getppid() == server:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PARTING_SECONDS)
    os._exit(1)


def main() -> int:
    threading.Thread(target=leave_with, args=(os.getppid(),), daemon=True).start()
    from tutor.app import run

    return run(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
