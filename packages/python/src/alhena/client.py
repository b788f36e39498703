"""A conversation of several turns with one agent that stays warm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from types import TracebackType
from typing import Any

from . import process
from .errors import AlhenaError, CommandFailedError, RunFailedError, UsageError, with_options
from .messages import Message, ResultMessage, SystemMessage
from .options import Options
from .permissions import PermissionResult, PermissionResultDeny, ToolPermissionContext, answer_of
from .query import Told, checked, object_of, refused, utf8

LOG = logging.getLogger("alhena")


class Client:
    """A conversation with Gemini CLI, turn after turn.

        async with Client(Options(approval="auto-edit", trust=True)) as client:
            await client.query("Fix the failing test")
            async for message in client.receive_response():
                print(message)
            await client.query("Now explain what was wrong")
            ...

    The names are those of the Claude Agent SDK's client, the messages those of [query][alhena.query]. Leaving the block, however
    it is left, stops Gemini CLI and every process that it started, and waits until none is left; the session is in the store then.
    """

    def __init__(self, options: Options | None = None) -> None:
        self._options = checked(options)
        for name in ("record", "session_id"):
            if getattr(self._options, name) is not None:
                raise UsageError(f"{name} is for a run, not for a conversation", "Use alhena.query.")
        self._open: _Connection | None = None

    async def connect(self) -> None:
        """Starts it. `async with` does that, too."""
        if self._open is not None:
            raise UsageError("the client is connected already")
        self._open = await _Connection.open(self._options)

    async def disconnect(self) -> None:
        """Ends it and waits until nothing is left. A turn that goes on is stopped."""
        connection, self._open = self._open, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.disconnect()

    async def query(self, prompt: str) -> None:
        """Says something. While a turn goes on, it waits for its end."""
        utf8(prompt)
        await self._connection().say({"type": "user", "message": {"role": "user", "content": prompt}})

    async def receive_messages(self) -> AsyncGenerator[Message, None]:
        """All messages of all turns, until the client is disconnected. An `alhena` that ends by itself is an error."""
        connection = self._connection()
        while (message := await connection.next()) is not None:
            yield message

    async def receive_response(self) -> AsyncGenerator[Message, None]:
        """The messages of one turn; the last one is its result, also of a turn that failed or was interrupted."""
        async for message in self.receive_messages():
            yield message
            if isinstance(message, ResultMessage):
                return

    async def ask(self, prompt: str) -> ResultMessage:
        """A whole turn: its result; RunFailedError unless it succeeded. The conversation goes on after that, too."""
        await self.query(prompt)
        async for message in self.receive_response():
            if isinstance(message, ResultMessage):
                if message.is_error:
                    raise RunFailedError(message, None)
                return message
        raise _over()

    async def interrupt(self) -> None:
        """Ends the turn that goes on: its result is then `cancelled`. The conversation goes on."""
        await self._connection().request({"subtype": "interrupt"})

    async def set_model(self, model: str | None = None) -> None:
        """Another model from the next prompt on; the first one without a name."""
        await self._connection().request({"subtype": "set_model", "model": model})

    async def set_permission_mode(self, mode: str) -> None:
        """What the model may do without asking from now on: the names of `Options.approval`."""
        await self._connection().request({"subtype": "set_permission_mode", "mode": mode})

    @property
    def session_id(self) -> str | None:
        """To go on by `Options.resume`, once a turn has begun."""
        return self._open.session_id if self._open else None

    def _connection(self) -> _Connection:
        if self._open is None:
            raise UsageError("the client is not connected", "Use `async with Client(...)`, or call connect() first.")
        return self._open


class _Connection:
    """`alhena chat --control`, and all that was asked and is not answered."""

    def __init__(self, options: Options, running: process.Process, stack: contextlib.AsyncExitStack) -> None:
        self.session_id: str | None = None
        self._options = options
        self._running = running
        self._stack = stack
        self._told = Told(options)
        self._begun = False
        # As much as is not taken: whoever does not take it must still hear what else is said.
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue()
        self._requests: dict[str, asyncio.Future[None]] = {}
        self._number = 0
        self._deciding: dict[str, asyncio.Task[None]] = {}
        self._error: AlhenaError | None = None
        self._over = False
        self._closing = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, options: Options) -> _Connection:
        async with contextlib.AsyncExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alhena-python-")))
            # How long somebody may think about a question is the program's own affair.
            arguments = ["chat", "--control", "--permission-timeout=none", *options.arguments(scratch)]
            arguments += ["--", *options.extra_args] if options.extra_args else []
            starting = process.start(arguments, stdin=None, env=options.env, binary=options.binary)
            running = await stack.enter_async_context(starting)
            connection = cls(options, running, stack.pop_all())
        try:
            await connection.request({"subtype": "initialize"})
        except BaseException:
            await connection.close()
            raise
        return connection

    async def close(self) -> None:
        self._closing = True
        try:
            # What it still says is read meanwhile: it must not wait for that.
            await self._stack.aclose()
        finally:
            self._reading.cancel()
            for task in self._deciding.values():
                task.cancel()
            self._finish(None)

    async def say(self, line: dict[str, Any]) -> None:
        if self._over:
            raise self._error or _over()
        # Half a character is no text: a line with one would not be read, and nobody would answer it.
        text = json.dumps(line, ensure_ascii=False).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        await self._running.write(text.encode() + b"\n")

    async def request(self, request: dict[str, Any]) -> None:
        self._number += 1
        name = str(self._number)
        answer = self._requests[name] = asyncio.get_running_loop().create_future()
        try:
            await self.say({"type": "control_request", "request_id": name, "request": request})
            await answer
        finally:
            del self._requests[name]

    async def next(self) -> Message | None:
        """The next message; None after the end."""
        if self._over and self._messages.empty():
            return None
        message = await self._messages.get()
        if message is None and self._error is not None:
            raise self._error
        return message

    async def _read(self) -> None:
        error: AlhenaError
        try:
            async for line in self._running.lines():
                self._line(object_of(line))
            exit_code, stderr = await self._running.end()
            error = refused(exit_code, stderr)
            if not self._begun and not self._messages.empty():
                last = self._messages.get_nowait()
                if isinstance(last, ResultMessage):
                    error = RunFailedError(last, exit_code)
        except AlhenaError as broken:
            error = broken
        except (KeyError, TypeError, ValueError) as broken:
            error = CommandFailedError("protocol", f"alhena printed what nobody understands: {broken!r}")
        self._finish(None if self._closing else error)

    def _finish(self, error: AlhenaError | None) -> None:
        """Nothing more comes."""
        if self._over:
            return
        self._over = True
        self._error = error
        for answer in self._requests.values():
            if not answer.done():
                answer.set_exception(error or _over())
        self._messages.put_nowait(None)

    def _line(self, line: dict[str, Any]) -> None:
        match line["type"]:
            case "control_response":
                self._answered(line["response"])
            case "control_request":
                name = line["request_id"]
                self._deciding[name] = asyncio.create_task(self._decide(name, line["request"]))
            case "control_cancel_request":
                if task := self._deciding.get(line["request_id"]):
                    task.cancel()
            case _:
                for message in self._told.line(line):
                    if isinstance(message, SystemMessage):
                        self.session_id = message.session_id
                    elif isinstance(message, ResultMessage):
                        # The next turn is told anew.
                        self._told = Told(self._options)
                    self._messages.put_nowait(message)

    def _answered(self, response: dict[str, Any]) -> None:
        self._begun = True
        answer = self._requests.get(response["request_id"])
        if answer is None or answer.done():
            return
        if response["subtype"] == "success":
            answer.set_result(None)
        else:
            answer.set_exception(UsageError(with_options(response["error"])))

    async def _decide(self, name: str, request: dict[str, Any]) -> None:
        response: dict[str, Any]
        try:
            result = await self._ask(request)
            response = {"subtype": "success", "request_id": name, "response": answer_of(result)}
        except Exception as error:
            # The model is told that it may not; people are told why.
            LOG.exception("can_use_tool failed for %s", request.get("tool_name"))
            response = {"subtype": "error", "request_id": name, "error": f"{type(error).__name__}: {error}"}
        finally:
            self._deciding.pop(name, None)
        with contextlib.suppress(AlhenaError):
            await self.say({"type": "control_response", "response": response})

    async def _ask(self, request: dict[str, Any]) -> PermissionResult:
        decide = self._options.can_use_tool
        if request["subtype"] != "can_use_tool" or decide is None:
            return PermissionResultDeny("Nobody is there to be asked, and neither the approval mode nor a list of tools allows it")
        context = ToolPermissionContext(request["tool_use_id"], request["title"])
        return await decide(request["tool_name"], request["input"], context)


def _over() -> AlhenaError:
    return AlhenaError("disconnected", "the conversation is over", "Connect again; `Options.resume` goes on with its session.")
