"""Tests of the module. Those on the real CLI run when `ALHENA_TEST_SCENARIOS` names the addresses of a scripted API:
`cargo xtask test real_hosts` sets everything up.
"""

import asyncio
import dataclasses
import json
import os
import stat
import tempfile
import unittest
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import alhena
from alhena import (
    AlhenaError,
    AssistantMessage,
    BinaryNotFoundError,
    CommandFailedError,
    Message,
    Options,
    PartialMessage,
    ResultMessage,
    RunFailedError,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UsageError,
    UserMessage,
    binary,
    process,
)
from alhena.query import Told
from alhena.run_options import RunOptions

SCENARIOS: dict[str, str] = json.loads(os.environ.get("ALHENA_TEST_SCENARIOS", "{}"))
WITH_CLI = unittest.skipUnless(SCENARIOS, "needs ALHENA_TEST_SCENARIOS")


class Directory(unittest.TestCase):
    """A directory of its own for each test."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(dir=os.environ.get("ALHENA_TEST_WORK"))
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name).resolve()

    def program(self, path: str, text: str = "exit 0") -> Path:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file


class Order(unittest.TestCase):
    def test_an_answer_comes_with_all_calls_that_it_grew_by_and_before_their_results(self) -> None:
        def line(name: str, *blocks: dict[str, Any]) -> dict[str, Any]:
            role = "user" if name in ("p", "a-results") else "assistant"
            message = {"id": name, "role": role, "content": list(blocks), "timestamp": 1}
            return {"type": "event", "event": {"type": "x"}, "message": message}

        def call(name: str) -> dict[str, Any]:
            return {"type": "tool_use", "id": name, "name": "Read", "input": {}}

        def result(name: str) -> dict[str, Any]:
            return {"type": "tool_result", "tool_use_id": name, "content": "", "is_error": False}

        text = {"type": "text", "text": "Done."}
        told = Told(Options())
        lines = [line("p", text), line("a", call("1")), line("a-results", result("1"))]
        # Over ACP the second call of an answer begins when the first has ended.
        lines += [line("a", call("1"), call("2")), line("a-results", result("1"), result("2")), line("b", text)]
        messages = [message for each in lines for message in told.line(each)]
        self.assertEqual([type(message) for message in messages], [UserMessage, AssistantMessage, UserMessage])
        blocks = [[type(block) for block in message.content] for message in messages if isinstance(message, (UserMessage, AssistantMessage))]
        self.assertEqual(blocks, [[TextBlock], [ToolUseBlock] * 2, [ToolResultBlock] * 2])


class Binary(Directory):
    def find(self, own: str = "nowhere", **variables: str) -> str:
        with (
            mock.patch.dict(os.environ, {"PATH": "", **variables}),
            mock.patch.object(binary, "_own_directories", lambda: [self.directory / own]),
        ):
            if "ALHENA_BIN" not in variables:
                os.environ.pop("ALHENA_BIN", None)
            return alhena.find_binary()

    def test_it_is_looked_for_in_the_environment_then_in_the_package_then_on_path(self) -> None:
        named, own, path = (str(self.program(f"{name}/alhena")) for name in ("named", "own", "path"))
        on_path = f"relative:{self.directory}/path"
        self.assertEqual(self.find("own", ALHENA_BIN=named, PATH=on_path), named)
        self.assertEqual(self.find("own", PATH=on_path), own)
        self.assertEqual(self.find(PATH=on_path), path)

    def test_it_is_never_taken_from_the_working_directory(self) -> None:
        self.program("alhena")
        self.program("bin/alhena")
        before = os.getcwd()
        os.chdir(self.directory)
        self.addCleanup(os.chdir, before)
        for path in ("", ".", ":", "bin", "./bin:"):
            with self.assertRaises(BinaryNotFoundError):
                self.find(PATH=path)

    def test_a_missing_one_is_an_error_with_a_hint(self) -> None:
        with self.assertRaises(BinaryNotFoundError) as raised:
            self.find()
        self.assertEqual(raised.exception.kind, "binary_not_found")
        self.assertEqual(raised.exception.message, "alhena not found: neither in the package nor on PATH")
        self.assertIn("ALHENA_BIN", raised.exception.hint)
        with self.assertRaises(BinaryNotFoundError) as raised:
            self.find("own", ALHENA_BIN=str(self.directory / "gone"))
        self.assertIn("ALHENA_BIN names no program", str(raised.exception))
        with self.assertRaises(BinaryNotFoundError) as raised:
            self.find("own", ALHENA_BIN="alhena")
        self.assertEqual(raised.exception.message, "ALHENA_BIN is no absolute path: alhena")

    def test_a_system_that_it_does_not_run_on_is_told(self) -> None:
        with mock.patch("alhena.binary.sys.platform", "win32"), self.assertRaises(alhena.UnsupportedPlatformError) as raised:
            self.find()
        self.assertIsInstance(raised.exception, BinaryNotFoundError)
        self.assertEqual(raised.exception.kind, "unsupported_platform")
        self.assertEqual(raised.exception.message, "alhena does not run on Windows itself")
        self.assertIn("WSL", raised.exception.hint)

    def test_one_that_cannot_be_started_is_an_error(self) -> None:
        broken = self.program("alhena")
        broken.write_text("no program at all")
        with self.assertRaisesRegex(BinaryNotFoundError, "could not be started"):
            asyncio.run(alhena.ask("hello", Options(binary=str(broken))))


class Arguments(Directory):
    def test_nothing_is_asked_for_by_default(self) -> None:
        self.assertEqual(Options().arguments(self.directory), ["--approval=default"])

    def test_every_option_has_its_place(self) -> None:
        options = Options(
            cwd="/w", model="m", approval="yolo", trust="settings", sandbox="docker", include_dirs=["/a", Path("/b")],
            allow_tools=["t"], deny_tools=["u"], policies=["/p.toml"], resume="id", max_turns=3, max_attempts=2,
            max_tokens=9, max_cost=0.5, max_calls=7, gemini="0.61.0", offline=True, use_config=False,
        )  # fmt: skip
        self.assertEqual(
            options.arguments(self.directory),
            ["--approval=yolo", "--dir=/w", "--model=m", "--trust=settings", "--sandbox=docker", "--include-dir=/a",
             "--include-dir=/b", "--allow-tool=t", "--deny-tool=u", "--policy=/p.toml", "--resume=id", "--max-turns=3",
             "--max-tokens=9", "--max-cost=0.5", "--max-calls=7", "--max-attempts=2", "--gemini=0.61.0", "--offline", "--no-config"],
        )  # fmt: skip
        self.assertEqual(Options(sandbox=False, resume=True).arguments(self.directory)[1:], ["--sandbox=off", "--resume"])

    def test_only_true_and_settings_trust_a_folder(self) -> None:
        trusting: list[tuple[Any, list[str]]] = [(True, ["--trust"]), ("settings", ["--trust=settings"]), (False, []), (None, [])]
        for trust, arguments in trusting:
            self.assertEqual(Options(trust=trust).arguments(self.directory)[1:], arguments)
        typos: list[Any] = ["x", "Settings", "true", "false", "", 1, 0, ["settings"]]
        for typo in typos:
            with self.subTest(typo), self.assertRaises(UsageError) as caught:
                Options(trust=typo).arguments(self.directory)
            self.assertEqual(caught.exception.message, f"trust must be True, False or 'settings', got: {typo!r}")
        with self.assertRaises(UsageError):
            alhena.detect(self.directory, trust=typos[0])

    def test_relative_directories_are_those_of_the_caller(self) -> None:
        options = Options(cwd="w", include_dirs=["i"])
        here = os.getcwd()
        self.assertEqual(options.arguments(self.directory)[1:], [f"--dir={here}/w", f"--include-dir={here}/i"])

    def test_a_time_out_is_the_only_limit_unless_others_are_given(self) -> None:
        self.assertEqual(
            Options(timeout=1.5).arguments(self.directory)[1:],
            ["--timeout=1500ms", "--first-event-timeout=1500ms", "--stall-timeout=1500ms"],
        )
        options = Options(timeout=timedelta(minutes=1), stall_timeout=5)
        self.assertEqual(
            options.arguments(self.directory)[1:],
            ["--timeout=60000ms", "--first-event-timeout=60000ms", "--stall-timeout=5000ms"],
        )
        unlimited = ["--timeout=none", "--first-event-timeout=none", "--stall-timeout=none"]
        self.assertEqual(Options(timeout="none").arguments(self.directory)[1:], unlimited)
        silent = Options(first_event_timeout="none", stall_timeout="none")
        self.assertEqual(silent.arguments(self.directory)[1:], ["--first-event-timeout=none", "--stall-timeout=none"])
        for wrong in (0, -1):
            with self.assertRaises(ValueError):
                Options(timeout=wrong).arguments(self.directory)

    def test_what_is_long_or_private_goes_into_files_that_nobody_else_can_read(self) -> None:
        options = Options(system_prompt="Be brief. \ud800", mcp_servers={"s": {"command": "x", "env": {"KEY": "secret"}}})
        arguments = options.arguments(self.directory)
        self.assertEqual(
            arguments[1:],
            [f"--mcp-server={self.directory}/mcp.json", f"--system-prompt-file={self.directory}/system-prompt.md",
             "--system-prompt-mode=append"],
        )  # fmt: skip
        self.assertEqual(
            json.loads((self.directory / "mcp.json").read_text()),
            {"mcpServers": {"s": {"command": "x", "env": {"KEY": "secret"}}}},
        )
        for name in ("mcp.json", "system-prompt.md"):
            self.assertEqual(stat.S_IMODE((self.directory / name).stat().st_mode), 0o600)


class StandIn(Directory):
    """What is told of an `alhena` that misbehaves."""

    def failure_of(self, script: str) -> AlhenaError:
        program = self.program("alhena", f"cat > /dev/null\n{script}")
        with self.assertRaises(AlhenaError) as raised:
            asyncio.run(alhena.ask("hello", Options(binary=str(program))))
        return raised.exception

    def test_a_refusal_is_told_with_its_reason_first(self) -> None:
        error = self.failure_of("echo 'error: no such model' >&2; echo 'hint: Take another.' >&2; exit 2")
        self.assertIsInstance(error, CommandFailedError)
        self.assertEqual((error.kind, error.message, error.hint, error.exit_code), ("usage", "no such model", "Take another.", 2))

    def test_an_error_names_options_as_python_does(self) -> None:
        usage: dict[str, Any] = {name: 0 for name in ("prompt", "cached", "output", "thoughts", "tool", "total")} | {"models": {}}
        failure = {"kind": "input", "message": "`max_cost` has to be more than 0", "hint": "Leave `max_cost` out."}
        outcome: dict[str, Any] = {"status": "failed", "text": "", "final_text": "", "session_id": None, "duration_ms": 0, "usage": usage}
        outcome |= {"files": [], "warnings": [], "failure": failure}
        line = json.dumps({"type": "result", "outcome": outcome, "messages": []})
        error = self.failure_of(f"cat <<'END'\n{line}\nEND\nexit 2")
        self.assertIsInstance(error, RunFailedError)
        self.assertEqual(str(error), "`max_cost` has to be more than 0\nLeave `max_cost` out.")

    def test_wrong_use_is_told_before_anything_is_started(self) -> None:
        started = self.directory / "started"
        program = str(self.program("alhena", f"touch {started}"))

        def wrong(prompt: Any, options: Any) -> str:
            with self.assertRaises(UsageError) as raised:
                asyncio.run(alhena.ask(prompt, options))
            self.assertEqual(raised.exception.kind, "usage")
            return raised.exception.message

        def with_options(**options: Any) -> str:
            return wrong("hello", Options(binary=program, **options))

        self.assertEqual(wrong(None, None), "the prompt must be a string, got: NoneType")
        self.assertEqual(wrong("hello", {"cwd": "x"}), "the options must be alhena.Options, got: dict")
        self.assertEqual(with_options(allow_tools="write_file"), "allow_tools must be a list, got: 'write_file'")
        self.assertEqual(with_options(timeout="10"), "timeout must be a number of seconds or a timedelta, got: '10'")
        for time in (float("nan"), float("inf"), 0):
            self.assertIn("timeout must be more than 0", with_options(timeout=time))
        self.assertEqual(with_options(cwd=3), "a path must be a string or a Path, got: 3")
        for options in ({"model": "a\0b"}, {"env": {"A": 1}}, {"env": {"A": "x\0"}}):
            self.assertIn("alhena cannot be given that", with_options(**options))
        self.assertFalse(started.exists())

    def test_a_command_that_answers_in_json_says_in_json_what_is_wrong(self) -> None:
        error = '{"error": {"message": "no such directory", "hint": "Another."}}'
        program = self.program("alhena", f"echo '{error}'; exit 2")
        with self.assertRaises(CommandFailedError) as raised:
            alhena.detect("x", binary=str(program))
        self.assertEqual((raised.exception.kind, raised.exception.message), ("usage", "no such directory"))
        self.assertEqual(raised.exception.hint, "Another.")

    def test_an_end_without_an_outcome_is_never_a_success(self) -> None:
        self.assertEqual(self.failure_of("exit 0").message, "alhena ended with exit code 0 and said nothing")
        self.assertEqual(self.failure_of("kill -9 $$").kind, "protocol")
        self.assertEqual(self.failure_of("echo rubbish").kind, "protocol")

    def test_leaving_waits_until_it_is_over_however_often_it_is_cancelled(self) -> None:
        marker = self.directory / "over"
        started = self.directory / "started"
        script = f"trap 'sleep 1; touch {marker}; exit 130' TERM\ntouch {started}\nwhile :; do sleep 0.1; done"
        program = self.program("alhena", script)

        async def cancelled() -> None:
            task = asyncio.create_task(alhena.ask("hello", Options(binary=str(program))))
            while not started.exists():
                await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(marker.exists())

        asyncio.run(cancelled())

    def test_lines_are_whole_however_long_they_are(self) -> None:
        script = "head -c 300000 /dev/zero | tr '\\0' x; printf '\\n\\nshort\\nlast'"
        program = self.program("alhena", script)

        async def lines() -> list[bytes]:
            async with process.start([], binary=str(program)) as running:
                told = [line async for line in running.lines()]
                self.assertEqual(await running.end(), (0, ""))
                return told

        self.assertEqual(asyncio.run(lines()), [b"x" * 300000, b"", b"short", b"last"])

    def test_one_that_does_not_obey_is_killed(self) -> None:
        started = self.directory / "started"
        program = self.program("alhena", f"trap '' TERM\ntouch {started}\nwhile :; do sleep 0.1; done")

        async def cancelled() -> None:
            task = asyncio.create_task(process.communicate([], binary=str(program)))
            while not started.exists():
                await asyncio.sleep(0.02)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        with mock.patch.object(process, "GRACE", 0.2):
            asyncio.run(cancelled())


async def _drain(messages: AsyncIterator[Message]) -> None:
    async for _ in messages:
        pass


@WITH_CLI
class RealCli(Directory):
    """On the real Gemini CLI, in a folder that nobody trusts."""

    def options(self, scenario: str, **more: object) -> Options:
        options = Options(cwd=self.directory, model="gemini-2.5-flash", trust=True, env={"GOOGLE_GEMINI_BASE_URL": SCENARIOS[scenario]})
        for name, value in more.items():
            setattr(options, name, value)
        return options

    def query(self, prompt: str, options: Options) -> tuple[list[Message], RunFailedError | None]:
        async def run() -> tuple[list[Message], RunFailedError | None]:
            messages: list[Message] = []
            try:
                async for message in alhena.query(prompt, options):
                    messages.append(message)
            except RunFailedError as error:
                return messages, error
            return messages, None

        return asyncio.run(run())

    def test_a_run_is_told_in_messages_and_ends_with_its_result(self) -> None:
        options = self.options("files", approval="auto-edit", include_events=True, include_partial_messages=True)
        messages, error = self.query("- write\n- the file", options)
        self.assertIsNone(error)
        self.assertTrue(any(isinstance(message, StreamEvent) for message in messages))
        said = [message for message in messages if not isinstance(message, (StreamEvent, PartialMessage))]
        self.assertEqual(
            [type(message) for message in said],
            [SystemMessage, UserMessage, AssistantMessage, UserMessage, AssistantMessage, ResultMessage],
        )
        _, asked, wrote, results, done, result = said
        assert isinstance(asked, UserMessage) and isinstance(wrote, AssistantMessage) and isinstance(done, AssistantMessage)
        assert isinstance(results, UserMessage) and isinstance(result, ResultMessage)
        self.assertEqual(asked.content, [TextBlock("- write\n- the file")])
        call = next(block for block in wrote.content if isinstance(block, ToolUseBlock))
        self.assertEqual((call.name, call.input), ("Write", {"file_path": "b.txt", "content": "made\n"}))
        assert isinstance(results.content, list)
        (answer,) = results.content
        assert isinstance(answer, ToolResultBlock)
        self.assertEqual((answer.tool_use_id, answer.is_error), (call.id, False))
        self.assertEqual(done.text, "Done.")
        self.assertEqual((result.subtype, result.is_error, result.result), ("success", False, "Done."))
        self.assertEqual([(file.path, file.change) for file in result.files], [("b.txt", "created")])
        self.assertGreater(result.usage.total, 0)
        self.assertEqual((self.directory / "b.txt").read_text(), "made\n")

        # What was said can be read again, by its id and as the latest.
        session = result.session_id
        assert session is not None
        loaded = alhena.load_messages(session, self.directory)
        self.assertEqual(loaded, alhena.load_messages(cwd=self.directory))
        self.assertEqual([message.original for message in loaded], [message.original for message in result.messages])
        self.assertEqual([message.id for message in result.messages], [asked.id, wrote.id, results.id, done.id])
        # While they grew they had the same names, and came before the result.
        partial = [message.message.id for message in messages if isinstance(message, PartialMessage)]
        self.assertEqual(list(dict.fromkeys(partial)), [asked.id, wrote.id, results.id, done.id])
        last_event = max(at for at, message in enumerate(messages) if isinstance(message, StreamEvent))
        self.assertLess(messages.index(wrote), last_event)
        self.assertIn(session, [known.id for known in alhena.list_sessions(self.directory)])
        for wrong in ("../../etc/passwd", "", "x.jsonl", "no-such-session"):
            with self.assertRaises(AlhenaError):
                alhena.load_messages(wrong, self.directory)

    def test_a_run_that_failed_has_a_result_and_then_an_error(self) -> None:
        messages, error = self.query("Go", self.options("blocked"))
        result = messages[-1]
        assert isinstance(result, ResultMessage) and error is not None
        self.assertTrue(result.is_error)
        self.assertEqual((error.kind, error.exit_code, error.result), ("invalid_response", 1, result))
        self.assertTrue(error.message.startswith("The model response was blocked"), error.message)

    def test_a_failed_or_refused_tool_is_told_the_same_way_while_streaming_and_at_the_end(self) -> None:
        options = self.options("failing", allow_tools=["run_shell_command"], include_partial_messages=True)
        messages, error = self.query("Try", options)
        self.assertIsNone(error)
        result = messages[-1]
        assert isinstance(result, ResultMessage)
        partial = [message.message for message in messages if isinstance(message, PartialMessage)]
        whole = [message for message in messages if isinstance(message, (UserMessage, AssistantMessage))]
        final = {message.id: message for message in result.messages}
        self.assertEqual({message.id: message for message in partial}, final)
        self.assertEqual([message.id for message in whole], list(final))

        def results(said: list[UserMessage | AssistantMessage]) -> list[tuple[str, bool, int | None]]:
            blocks = [block for message in said for block in message.content]
            return [(block.tool_use_id, block.is_error, block.exit_code) for block in blocks if isinstance(block, ToolResultBlock)]

        # From the first time that it is told.
        in_the_end = results(result.messages)
        self.assertEqual(set(results(partial)), set(in_the_end))
        self.assertEqual(results(whole), in_the_end)
        # A command that failed is an error with an exit code.
        self.assertEqual([told[1:] for told in in_the_end], [(True, 3), (True, None), (True, None)] * 2)

    def test_errors_name_the_option_with_the_bad_value(self) -> None:
        (self.directory / "full").mkdir()
        (self.directory / "full" / "file").touch()
        (self.directory / "bad.json").write_text("[1]")
        missing = self.directory / "missing"
        bad: dict[str, object] = {
            "cwd": missing,
            "approval": "x",
            "trust": "x",
            "sandbox": "x",
            "include_dirs": [missing],
            "allow_tools": ["run_shell_command("],
            "deny_tools": ["run_shell_command("],
            "policies": [missing],
            "mcp_servers": missing,
            "system_prompt_mode": "x",
            "resume": "",
            "session_id": "no/good",
            "timeout": 0,
            "first_event_timeout": "soon",
            "stall_timeout": -1,
            "max_turns": 0,
            "max_attempts": 0,
            "max_tokens": 0,
            "max_cost": 0,
            "max_calls": 0,
            "schema": missing,
            "schema_attempts": -1,
            "record": self.directory / "full",
            "extra_args": "--debug",
            "offline": self.directory / "bad.json",
            "gemini": missing,
        }
        # Any text is a model or a prompt, and these are no options of the command.
        without = {"model", "system_prompt", "env", "use_config"}
        self.assertEqual(set(bad) | without, {field.name for field in dataclasses.fields(RunOptions)})
        for name, value in bad.items():
            more: dict[str, Any] = {"system_prompt": "Be brief."} if name == "system_prompt_mode" else {}
            more |= {"schema": {}} if name == "schema_attempts" else {}
            options = self.options("files", **{name: value}, **more)
            with self.subTest(name), self.assertRaises(AlhenaError) as caught:
                asyncio.run(_drain(alhena.query("Go", options)))
            self.assertIn(name, f"{caught.exception.message} {caught.exception.hint}")
            self.assertNotIn("--" + name.replace("_", "-"), str(caught.exception))

    def test_a_run_ends_in_time(self) -> None:
        _, error = self.query("Go", self.options("hang", timeout=6))
        assert error is not None
        self.assertEqual((error.kind, error.exit_code, error.message), ("timeout", 124, "The run took longer than 6 s"))

    def test_a_run_that_nobody_wants_any_more_is_stopped(self) -> None:
        async def leave() -> None:
            messages = alhena.query("Go", self.options("hang", include_events=True))
            async for message in messages:
                if isinstance(message, StreamEvent) and message.type == "text":
                    break
            await messages.aclose()

        # That nothing is left is seen by whoever started this test.
        asyncio.run(leave())

    def test_what_is_detected_is_what_runs(self) -> None:
        found = alhena.detect(self.directory)
        assert found is not None
        self.assertEqual(found.path, os.environ["GEMINI_CLI_PATH"])
        self.assertIsNone(alhena.detect(self.directory, gemini="/nonexistent/gemini"))
        _, error = self.query("Go", self.options("hang", gemini="/nonexistent/gemini"))
        assert error is not None
        self.assertEqual((error.kind, error.exit_code), ("not_installed", 3))


if __name__ == "__main__":
    unittest.main()
