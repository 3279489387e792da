"""JSON lines between processes: length-limited, never pickle. Both ends treat a malformed line as a lost message."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

LIMIT = 1 << 20  # bytes of one message


class Lost(Exception):
    """The other side closed, died, sent something malformed or did not answer in time; the text says which."""


class Channel:
    """A stream socket that carries one JSON object a line."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, allow_nan=True).encode() + b"\n"
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Lost(f"closed ({error})") from error

    def receive(self, timeout: float | None = None) -> dict[str, Any]:
        """The next message. Raises Lost, or TimeoutError after `timeout` seconds without a whole line."""
        self.sock.settimeout(timeout)
        while b"\n" not in self.buffer:
            if len(self.buffer) > LIMIT:
                raise Lost("message too long")
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                raise
            except OSError as error:
                raise Lost(f"closed ({error})") from error
            if not data:
                raise Lost("closed")
            self.buffer += data
        line, _, rest = bytes(self.buffer).partition(b"\n")
        self.buffer = bytearray(rest)
        try:
            message = json.loads(line)
        except ValueError as error:
            raise Lost("malformed message") from error
        if not isinstance(message, dict):
            raise Lost("malformed message")
        return message

    def close(self) -> None:
        self.sock.close()


def send_with_fds(sock: socket.socket, message: dict[str, Any], fds: list[int]) -> None:
    """One framed message with file descriptors beside it (trusted ends only: judge to warm process)."""
    data = json.dumps(message).encode()
    socket.send_fds(sock, [struct.pack("!I", len(data)) + data], fds)


def receive_with_fds(sock: socket.socket, most: int = 4) -> tuple[dict[str, Any], list[int]]:
    """Raises Lost when the other end closed."""
    data, fds, _, _ = socket.recv_fds(sock, 65536, most)
    if not data:
        raise Lost("closed")
    (size,) = struct.unpack("!I", data[:4])
    data = data[4:]
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise Lost("closed")
        data += more
    for fd in fds:
        os.set_inheritable(fd, False)
    return json.loads(data), list(fds)
