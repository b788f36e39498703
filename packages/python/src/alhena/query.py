"""Asking Gemini CLI."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

from . import process
from .errors import CommandFailedError, RunFailedError
from .messages import Message, ResultMessage, StreamEvent, SystemMessage, message_of, result_of
from .options import Options


async def query(prompt: str, options: Options | None = None) -> AsyncGenerator[Message, None]:
    """Runs Gemini CLI on a prompt, and yields what it says; the last message is the result.

    A run that did not succeed raises [RunFailedError][alhena.RunFailedError] after its result. Cancelled or closed, it
    stops Gemini CLI and every process that it started, and waits until none is left.
    """
    options = options or Options()
    with tempfile.TemporaryDirectory(prefix="alhena-python-") as directory:
        scratch = Path(directory)
        recording = Path(options.record).absolute() if options.record else scratch / "recording"
        arguments = ["run", "--as=events", *options.arguments(scratch), f"--record={recording}", "-"]
        if options.extra_args:
            arguments += ["--", *options.extra_args]
        outcome: dict[str, Any] | None = None
        stdin = prompt.encode("utf-8", "surrogatepass")
        async with process.start(arguments, stdin=stdin, env=options.env, binary=options.binary) as running:
            async for line in running.lines():
                event = _event(line)
                if options.include_events:
                    yield StreamEvent(event["type"], event)
                if event["type"] == "started":
                    yield SystemMessage(event["session_id"], event["model"])
                elif event["type"] == "finished":
                    outcome = event["outcome"]
            exit_code, stderr = await running.end()
        if outcome is None:
            raise refused(exit_code, stderr)
        for message in await _messages(recording, options):
            yield message_of(message)
        result = result_of(outcome)
        yield result
        if result.is_error:
            raise RunFailedError(result, exit_code)


async def ask(prompt: str, options: Options | None = None) -> ResultMessage:
    """Runs Gemini CLI on a prompt and gives the result; RunFailedError unless it succeeded."""
    result: ResultMessage | None = None
    async for message in query(prompt, options):
        if isinstance(message, ResultMessage):
            result = message
    assert result is not None, "a run that did not fail has a result"
    return result


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or "type" not in event:
        sample = line[:200].decode("utf-8", "replace").strip()
        raise CommandFailedError("protocol", f"alhena printed what is no event: {sample}")
    return event


async def _messages(recording: Path, options: Options) -> list[Mapping[str, Any]]:
    if not recording.is_dir():
        return []
    done = await process.communicate(
        ["parse", "--as=messages", str(recording)], env=options.env, binary=options.binary
    )
    return list(json.loads(done.stdout)) if done.stdout.strip() else []


def refused(exit_code: int, stderr: str) -> CommandFailedError:
    """The error of an `alhena` that came to no answer: its own words say why."""
    said = [line for line in stderr.strip().splitlines() if line]
    message = said[0].removeprefix("error: ") if said else f"alhena ended with exit code {exit_code} and said nothing"
    kind = "usage" if exit_code == 2 else "protocol"
    return CommandFailedError(kind, message, "\n".join(line.removeprefix("hint: ") for line in said[1:]), exit_code)
