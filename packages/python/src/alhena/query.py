"""Asking Gemini CLI."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

from . import process
from .errors import CommandFailedError, RunFailedError, UsageError, with_options
from .messages import Message, PartialMessage, ResultMessage, StreamEvent, SystemMessage, message_of, result_of
from .options import Options


async def query(prompt: str, options: Options | None = None) -> AsyncGenerator[Message, None]:
    """Runs Gemini CLI on a prompt, and yields what it says; the last message is the result.

    A run that did not succeed raises [RunFailedError][alhena.RunFailedError] after its result. Cancelled or closed, it
    stops Gemini CLI and every process that it started, and waits until none is left.
    """
    options = checked(options)
    stdin = utf8(prompt)
    if options.can_use_tool is not None:
        raise UsageError("a run asks nobody: can_use_tool is for a Client", "Use alhena.Client, or allow_tools.")
    with tempfile.TemporaryDirectory(prefix="alhena-python-") as directory:
        scratch = Path(directory)
        arguments = ["run", "--as=message-lines", *options.arguments(scratch)]
        if options.record is not None:
            arguments.append(f"--record={Path(options.record).absolute()}")
        arguments += ["-", "--", *options.extra_args] if options.extra_args else ["-"]
        result: ResultMessage | None = None
        told = Told(options)
        async with process.start(arguments, stdin=stdin, env=options.env, binary=options.binary) as running:
            async for line in running.lines():
                for message in told.line(object_of(line)):
                    if isinstance(message, ResultMessage):
                        result = message
                    else:
                        yield message
            exit_code, stderr = await running.end()
        if result is None:
            raise refused(exit_code, stderr)
        yield result
        if result.is_error:
            raise RunFailedError(result, exit_code)


class Told:
    """The lines as messages, each when it is whole: an answer and its tool results when another one begins or the run is over.

    Over ACP the tools of one answer run one after the other, so an answer still grows while its results come in.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._growing: dict[str, dict[str, Any]] = {}
        self._whole: set[str] = set()

    def line(self, line: dict[str, Any]) -> Iterator[Message]:
        if line["type"] == "event":
            yield from self._event(line["event"], line.get("message"))
        elif line["type"] == "message" and self._options.include_partial_messages:
            # As it turned out when everything was known.
            yield PartialMessage(message_of(line["message"]))
        elif line["type"] == "result":
            for message in line["messages"]:
                if message["id"] not in self._whole:
                    yield message_of(message)
            yield result_of(line["outcome"], line["messages"])

    def _event(self, event: dict[str, Any], message: dict[str, Any] | None) -> Iterator[Message]:
        if event["type"] == "started":
            yield SystemMessage(event["session_id"], event["model"])
        if self._options.include_events:
            yield StreamEvent(event["type"], event)
        if message is None or message["id"] in self._whole:
            return
        if message["id"] not in self._growing and not _holds_results(message):
            self._whole.update(self._growing)
            yield from map(message_of, self._growing.values())
            self._growing.clear()
        self._growing[message["id"]] = message
        if self._options.include_partial_messages:
            yield PartialMessage(message_of(message))


def _holds_results(message: dict[str, Any]) -> bool:
    """Whether a message holds the results of the tools that the answer before it called."""
    content = message["content"]
    return not isinstance(content, str) and any(block["type"] == "tool_result" for block in content)


def checked(options: Options | None) -> Options:
    """The options, if they are some."""
    if options is not None and not isinstance(options, Options):
        raise UsageError(f"the options must be alhena.Options, got: {type(options).__name__}")
    return options or Options()


def utf8(prompt: str) -> bytes:
    """The prompt, if it is one."""
    if not isinstance(prompt, str):
        raise UsageError(f"the prompt must be a string, got: {type(prompt).__name__}")
    return prompt.encode("utf-8", "surrogatepass")


async def ask(prompt: str, options: Options | None = None) -> ResultMessage:
    """Runs Gemini CLI on a prompt and gives the result; RunFailedError unless it succeeded."""
    result: ResultMessage | None = None
    async for message in query(prompt, options):
        if isinstance(message, ResultMessage):
            result = message
    assert result is not None, "a run that did not fail has a result"
    return result


def object_of(line: bytes) -> dict[str, Any]:
    """A line that `alhena` printed."""
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict) or "type" not in value:
        sample = line[:200].decode("utf-8", "replace").strip()
        raise CommandFailedError("protocol", f"alhena printed what nobody understands: {sample}")
    return value


def refused(exit_code: int, stderr: str, stdout: bytes = b"") -> CommandFailedError:
    """The error of an `alhena` that came to no answer: its own words say why."""
    kind = "usage" if exit_code == 2 else "failed"
    told = _told_in_json(stdout)
    if told is not None:
        return CommandFailedError(kind, with_options(told["message"]), with_options(told.get("hint") or ""), exit_code)
    said = [line for line in stderr.strip().splitlines() if line]
    message = said[0].removeprefix("error: ") if said else f"alhena ended with exit code {exit_code} and said nothing"
    return CommandFailedError(kind if said else "protocol", message, "\n".join(line.removeprefix("hint: ") for line in said[1:]), exit_code)


def _told_in_json(stdout: bytes) -> dict[str, Any] | None:
    """A command that was asked for JSON says in JSON what is wrong, too."""
    try:
        error = json.loads(stdout)["error"]
    except (ValueError, KeyError, TypeError):
        return None
    return error if isinstance(error, dict) and "message" in error else None
