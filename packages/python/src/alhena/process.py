"""The process `alhena`: started without a shell, and never left behind.

For adapters, which need other views of a run than [query][alhena.query].
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from .binary import find_binary
from .errors import BinaryNotFoundError, UsageError

# Told to stop, `alhena` takes a few seconds to stop everything that it started. This is for one that could not:
# killed, its keeper still stops the rest.
GRACE = 30.0
# How much is read at once. Whoever takes the lines slowly slows `alhena` down, and loses nothing.
CHUNK = 2**16


@dataclass
class Finished:
    """How `alhena` ended."""

    exit_code: int
    stdout: bytes
    stderr: str


class Process:
    """A running `alhena`."""

    def __init__(self, process: asyncio.subprocess.Process, prompt: bytes | None) -> None:
        self._process = process
        self._feeding = None if prompt is None else asyncio.create_task(self._feed(prompt))
        self._stderr = asyncio.create_task(_everything(process.stderr))

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines that it prints, until it closes its output."""
        stdout = self._process.stdout
        assert stdout is not None
        # Not by `readline`, which gives up on long lines: one may hold a whole tool output.
        parts: list[bytes] = []
        while chunk := await stdout.read(CHUNK):
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                yield b"".join([*parts, line])
                parts = []
            parts.append(rest)
        if last := b"".join(parts):
            yield last

    async def end(self) -> tuple[int, str]:
        """Waits until it is over: its exit code, and what it said on stderr."""
        exit_code = await self._process.wait()
        stderr = await self._stderr
        return exit_code, stderr.decode("utf-8", "replace")

    async def stop(self) -> None:
        """Stops it and waits until nothing that it started is left."""
        try:
            await _stop(self._process)
        finally:
            if self._feeding is not None:
                self._feeding.cancel()
            self._stderr.cancel()

    async def write(self, text: bytes) -> None:
        """Says something to one that was started without a prompt. One that has ended does not hear it."""
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(text)
            await stdin.drain()

    async def _feed(self, prompt: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        # One that refuses its arguments does not read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(prompt)
            await stdin.drain()
        stdin.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await stdin.wait_closed()


async def _spawn(
    arguments: Sequence[str], env: Mapping[str, str] | None, binary: str | None
) -> asyncio.subprocess.Process:
    program = binary or find_binary()
    try:
        return await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
    except OSError as error:
        raise BinaryNotFoundError(f"alhena could not be started: {error}") from error
    except (TypeError, ValueError) as error:
        # Such as a zero byte in an argument, or a variable that is no text.
        raise UsageError(f"alhena cannot be given that: {error}") from error


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stops it and waits until nothing that it started is left, however often this is cancelled meanwhile."""
    stopping = asyncio.ensure_future(_end(process))
    cancelled = False
    while not stopping.done():
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        raise asyncio.CancelledError


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), GRACE)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def start(
    arguments: Sequence[str],
    *,
    stdin: bytes | None = b"",
    env: Mapping[str, str] | None = None,
    binary: str | None = None,
) -> AsyncIterator[Process]:
    """Starts `alhena`. When the block is left, however it is left, the process and all that it started are gone.

    What it reads is `stdin`; None leaves that open for `Process.write`.
    """
    process = await _spawn(arguments, env, binary)
    running = Process(process, stdin)
    try:
        yield running
    finally:
        await running.stop()


async def communicate(
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    binary: str | None = None,
) -> Finished:
    """Runs `alhena` to its end. Cancelled, it stops it and waits until nothing is left."""
    process = await _spawn(arguments, env, binary)
    try:
        stdout, stderr = await process.communicate(stdin)
    finally:
        await _stop(process)
    exit_code = process.returncode
    assert exit_code is not None, "it was waited for"
    return Finished(exit_code, stdout, stderr.decode("utf-8", "replace"))


def communicate_now(
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    binary: str | None = None,
    timeout: float | None = None,
) -> Finished:
    """The same without an event loop, for commands that end by themselves; `subprocess.TimeoutExpired` if one does not."""
    program = binary or find_binary()
    try:
        done = subprocess.run(
            [program, *arguments],
            input=stdin,
            capture_output=True,
            env={**os.environ, **(env or {})},
            timeout=timeout,
            check=False,
        )
    except OSError as error:
        raise BinaryNotFoundError(f"alhena could not be started: {error}") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"alhena cannot be given that: {error}") from error
    return Finished(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))


async def _everything(pipe: asyncio.StreamReader | None) -> bytes:
    return await pipe.read() if pipe else b""
