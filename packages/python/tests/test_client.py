"""Tests of the client: a conversation of several turns."""

import asyncio
import json
import os
import signal
import sys
import unittest
from typing import Any

import alhena
from alhena import (
    AlhenaError,
    AssistantMessage,
    Client,
    CommandFailedError,
    Message,
    Options,
    PartialMessage,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    RunFailedError,
    SystemMessage,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UsageError,
    UserMessage,
)

from .test_alhena import SCENARIOS, WITH_CLI, Directory

BEGUN = '{"type": "control_response", "response": {"subtype": "success", "request_id": "1", "response": {}}}'


class StandIn(Directory):
    """With programs in the place of `alhena`."""

    def client(self, script: str, **options: Any) -> Client:
        return Client(Options(binary=str(self.program("alhena", script)), **options))

    def test_what_makes_no_sense_is_refused_before_anything_starts(self) -> None:
        started = self.directory / "started"
        client = self.client(f"touch {started}")
        options: Any = {"cwd": "x"}
        for wrong in (options, Options(record="x"), Options(session_id="x")):
            with self.assertRaises(UsageError):
                Client(wrong)

        async def not_connected() -> None:
            for call in (client.query("hello"), client.interrupt(), client.set_model("x"), client.ask("hello")):
                with self.assertRaises(UsageError) as raised:
                    await call
                self.assertEqual(raised.exception.message, "the client is not connected")
            await client.disconnect()

        async def asked() -> None:
            async def never(_: str, __: dict[str, Any], ___: ToolPermissionContext) -> PermissionResult:
                return PermissionResultAllow()

            with self.assertRaises(UsageError):
                await alhena.ask("hello", Options(can_use_tool=never))

        asyncio.run(not_connected())
        asyncio.run(asked())
        self.assertFalse(started.exists())

    def test_one_that_does_not_begin_says_why(self) -> None:
        async def connect(script: str) -> AlhenaError:
            with self.assertRaises(AlhenaError) as raised:
                await self.client(script).connect()
            return raised.exception

        def error(script: str) -> tuple[str, str]:
            raised = asyncio.run(connect(script))
            return raised.kind, raised.message

        self.assertEqual(error("echo 'error: no' >&2; exit 2"), ("usage", "no"))
        self.assertEqual(error("exit 0")[0], "protocol")
        self.assertEqual(error("echo rubbish; exec sleep 60")[0], "protocol")
        self.assertEqual(error('echo \'{"type": "control_response"}\'; exec sleep 60')[0], "protocol")
        with self.assertRaises(alhena.BinaryNotFoundError):
            asyncio.run(Client(Options(binary="/nonexistent")).connect())

    def test_one_that_dies_is_an_error_for_everybody_who_waits(self) -> None:
        async def talk() -> None:
            async with self.client(f"read line; echo '{BEGUN}'; read line; kill -9 $$") as client:
                receiving = asyncio.create_task(client.receive_response().__anext__())
                with self.assertRaises(CommandFailedError):
                    await client.interrupt()
                with self.assertRaises(CommandFailedError) as raised:
                    await receiving
                self.assertEqual(raised.exception.kind, "protocol")
                with self.assertRaises(CommandFailedError):
                    await client.query("hello")

        asyncio.run(talk())

    def test_whoever_waits_while_it_is_closed_is_not_left_waiting(self) -> None:
        async def talk() -> None:
            client = self.client(f"read line; echo '{BEGUN}'; while :; do sleep 0.1; done")
            await client.connect()
            with self.assertRaises(UsageError):
                await client.connect()
            waiting = asyncio.create_task(self.all(client))
            changing = asyncio.create_task(client.set_model("x"))
            await asyncio.sleep(0)
            await client.disconnect()
            self.assertEqual(await waiting, [])
            with self.assertRaises(AlhenaError) as raised:
                await changing
            self.assertEqual(raised.exception.kind, "disconnected")
            await client.disconnect()

        asyncio.run(talk())

    async def all(self, client: Client) -> list[Message]:
        return [message async for message in client.receive_messages()]

    def test_half_a_character_does_not_cost_the_line(self) -> None:
        heard = self.directory / "heard"

        async def talk() -> None:
            script = f"read line; echo '{BEGUN}'; read -r line; printf '%s\\n' \"$line\" > {heard}; kill -9 $$"
            async with self.client(script) as client:
                await client.query("a\ud800 b\nc")
                with self.assertRaises(CommandFailedError):
                    await self.all(client)

        asyncio.run(talk())
        self.assertRegex(json.loads(heard.read_text())["message"]["content"], "^a\ufffd+ b\nc$")

    def test_a_decision_that_fails_is_a_no(self) -> None:
        question = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t", "title": "ls", "new": 1}
        heard = self.directory / "heard"
        lines = [json.dumps({"type": "control_request", "request_id": f"alhena-{at}", "request": question}) for at in (1, 2)]
        script = f"read line; echo '{BEGUN}'; echo '{lines[0]}'; read line; echo \"$line\" > {heard}"
        script += f"; echo '{lines[1]}'; read line; echo \"$line\" >> {heard}; touch {heard}.all; exec sleep 60"

        async def decide(tool: str, _: dict[str, Any], context: ToolPermissionContext) -> Any:
            self.assertEqual((tool, context.tool_use_id, context.title), ("Bash", "t", "ls"))
            if not heard.exists():
                raise RuntimeError("no idea")
            return True

        async def talk() -> None:
            async with self.client(script, can_use_tool=decide):
                while not (self.directory / "heard.all").exists():
                    await asyncio.sleep(0.02)

        with self.assertLogs("alhena", "ERROR"):
            asyncio.run(talk())
        said = [json.loads(line)["response"] for line in heard.read_text().splitlines()]
        self.assertEqual([answer["subtype"] for answer in said], ["error", "error"])
        self.assertEqual(said[0]["error"], "RuntimeError: no idea")


@WITH_CLI
class RealCli(Directory):
    """On the real Gemini CLI, in a folder that nobody trusts."""

    def options(self, scenario: str, **more: Any) -> Options:
        env = {"GOOGLE_GEMINI_BASE_URL": SCENARIOS[scenario]}
        return Options(cwd=self.directory, model="gemini-2.5-flash", trust=True, env=env, **more)

    def test_a_conversation_has_turns_and_its_program_decides(self) -> None:
        asked: list[tuple[str, dict[str, Any], str]] = []

        async def decide(tool: str, arguments: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
            asked.append((tool, arguments, context.tool_use_id))
            return PermissionResultAllow() if tool == "Write" else PermissionResultDeny("not here")

        async def talk() -> tuple[list[Message], list[Message], ResultMessage, ResultMessage]:
            options = self.options("talk", can_use_tool=decide, include_partial_messages=True)
            async with Client(options) as client:
                await client.query("- write")
                first = [message async for message in client.receive_response()]
                await client.query("shell")
                second = [message async for message in client.receive_response()]
                await client.query("hang")
                async for message in client.receive_response():
                    if isinstance(message, PartialMessage) and isinstance(message.message, AssistantMessage):
                        await client.interrupt()
                assert isinstance(message, ResultMessage)
                await client.set_model("gemini-2.5-pro")
                await client.set_permission_mode("auto-edit")
                with self.assertRaises(UsageError):
                    await client.set_permission_mode("fly")
                last = await client.ask("go on")
                with self.assertRaises(RunFailedError):
                    await client.ask("")
                self.assertEqual(client.session_id, last.session_id)
            return first, second, message, last

        first, second, interrupted, last = asyncio.run(talk())
        said = [message for message in first if not isinstance(message, PartialMessage)]
        kinds: list[type] = [SystemMessage, UserMessage, AssistantMessage, UserMessage, AssistantMessage, ResultMessage]
        self.assertEqual([type(message) for message in said], kinds)
        wrote, result = said[2], first[-1]
        assert isinstance(wrote, AssistantMessage) and isinstance(result, ResultMessage)
        call = next(block for block in wrote.content if isinstance(block, ToolUseBlock))
        self.assertEqual((call.name, call.input, call.id), asked[0])
        self.assertEqual((result.result, [file.path for file in result.files]), ("Written.", ["b.txt"]))
        # The last one of each id is the one in the result.
        grown = {message.message.id: message.message for message in first if isinstance(message, PartialMessage)}
        self.assertEqual(list(grown.values()), result.messages)

        denied = second[-1]
        assert isinstance(denied, ResultMessage)
        refusal = next(block for message in denied.messages for block in message.content if isinstance(block, ToolResultBlock))
        self.assertTrue(refusal.is_error and "not here" in refusal.content, refusal)
        self.assertFalse((self.directory / "never").exists())
        self.assertEqual((interrupted.subtype, interrupted.is_error), ("cancelled", True))
        self.assertEqual((last.result, [file.path for file in last.files]), ("Back.", ["c.txt"]))
        self.assertEqual([tool for tool, _, _ in asked], ["Write", "Bash"])
        # It is all one session, which is in the store and can be gone on with.
        self.assertEqual({result.session_id, denied.session_id}, {last.session_id})
        assert last.session_id is not None
        self.assertEqual([known.id for known in alhena.list_sessions(self.directory)], [last.session_id])

    def test_without_anybody_to_ask_nothing_is_allowed(self) -> None:
        async def talk() -> ResultMessage:
            async with Client(self.options("alone")) as client:
                return await client.ask("write")

        self.assertEqual(asyncio.run(talk()).files, [])

    def test_a_turn_ends_in_time_and_a_client_that_cannot_begin_says_why(self) -> None:
        async def slow() -> None:
            async with Client(self.options("hang", timeout=8)) as client:
                await client.ask("Go")

        async def nowhere() -> None:
            async with Client(self.options("hang", gemini="/nonexistent/gemini")):
                pass

        for talk, kind in ((slow, "timeout"), (nowhere, "not_installed")):
            with self.assertRaises(RunFailedError) as raised:
                asyncio.run(talk())
            self.assertEqual(raised.exception.kind, kind)

    def test_a_client_that_is_left_in_a_turn_stops_it(self) -> None:
        async def leave() -> None:
            async with Client(self.options("hang", include_partial_messages=True)) as client:
                await client.query("Go")
                async for message in client.receive_response():
                    if isinstance(message, PartialMessage) and isinstance(message.message, AssistantMessage):
                        raise KeyError("something else")

        with self.assertRaises(KeyError):
            asyncio.run(leave())

    def test_a_program_that_is_killed_leaves_nothing(self) -> None:
        # That nothing is left is seen by whoever started this test.
        program = f"""
import asyncio
from alhena import AssistantMessage, Client, Options, PartialMessage

async def main() -> None:
    env = {{"GOOGLE_GEMINI_BASE_URL": {SCENARIOS["hang"]!r}}}
    async with Client(Options(cwd={str(self.directory)!r}, trust=True, env=env, include_partial_messages=True)) as client:
        await client.query("Go")
        async for message in client.receive_response():
            if isinstance(message, PartialMessage) and isinstance(message.message, AssistantMessage):
                print("at work", flush=True)

asyncio.run(main())
"""

        async def kill() -> None:
            running = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
            assert running.stdout is not None
            self.assertEqual(await running.stdout.readline(), b"at work\n")
            os.kill(running.pid, signal.SIGKILL)
            await running.wait()

        asyncio.run(kill())


if __name__ == "__main__":
    unittest.main()
