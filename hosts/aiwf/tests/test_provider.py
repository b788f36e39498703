"""Tests of the provider. Those on the real CLI run when `ALHENA_TEST_SCENARIOS` names the addresses of a scripted API:
`cargo xtask test real_hosts` sets everything up. Under pytest they have the engine's marker, `gemini_cli`.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock
from unittest.mock import AsyncMock

import alhena
import alhena_aiwf
from alhena_aiwf import GeminiCliAIProvider, GeminiCliProvider, ProviderError, ProviderResult, provider

HERE = Path(__file__).parent
SCENARIOS: dict[str, str] = json.loads(os.environ.get("ALHENA_TEST_SCENARIOS", "{}"))
WITH_ALHENA = unittest.skipUnless(os.environ.get("ALHENA_BIN"), "needs ALHENA_BIN")
WITH_CLI = unittest.skipUnless(SCENARIOS, "needs ALHENA_TEST_SCENARIOS")
T = TypeVar("T")

try:
    import pytest  # type: ignore[import-not-found, unused-ignore]

    gemini_cli: Callable[[T], T] = pytest.mark.gemini_cli
except ImportError:

    def gemini_cli(case: T) -> T:
        return case


class Configuration(unittest.TestCase):
    def refuse(self, message: str, **config: Any) -> None:
        with self.assertRaises(ValueError) as raised:
            GeminiCliProvider(config)
        self.assertEqual(str(raised.exception), message)

    def test_metadata_needs_no_instance(self) -> None:
        self.assertEqual(
            json.dumps(GeminiCliProvider.get_metadata()),
            '{"name": "gemini-cli", "description": "Gemini CLI AI agent via subprocess", "requires_config": false, '
            '"config_keys": ["model", "sandbox", "approval_mode", "include_directories", "allowed_tools", "working_dir", "timeout"], '
            '"default_response_timeout": 600, "fs_ability": "local-write"}',
        )

    def test_mapping_and_keywords_are_the_same(self) -> None:
        for provider in (
            GeminiCliProvider({"model": "m", "timeout": 5}),
            GeminiCliProvider(model="m", timeout=5),
            GeminiCliProvider({"model": "n", "timeout": 5}, model="m"),
        ):
            self.assertEqual(provider.config, {"model": "m", "timeout": 5})
        self.assertEqual(GeminiCliProvider(None).config, {})

    def test_wrong_values_are_refused(self) -> None:
        self.refuse("timeout must be > 0", timeout=0)
        self.refuse("timeout must be > 0", timeout=-1)
        self.refuse("approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: 'x'", approval_mode="x")
        self.refuse("approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: \"it's\"", approval_mode="it's")
        self.refuse("include_directories must be a list, got: str", include_directories="src")
        self.refuse("allowed_tools must be a list, got: tuple", allowed_tools=("read_file",))
        self.refuse("timeout must be a number, got: str", timeout="10")
        self.refuse("timeout must be > 0", timeout=float("nan"))
        self.refuse("approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: ['yolo']", approval_mode=["yolo"])
        self.refuse("working_dir must be a string, got: int", working_dir=5)

    def test_what_no_run_can_be_made_of_is_the_engines_error(self) -> None:
        provider = GeminiCliProvider()
        nonsense: list[tuple[str, Any, Any, Any]] = [
            ("prompt must be a str, got: NoneType", None, {}, None),
            ("context must be a mapping, got: list", "Go", ["x"], None),
            ("system_prompt must be a str, got: int", "Go", {}, 5),
        ]
        for message, prompt, context, system_prompt in nonsense:
            with self.assertRaises(ProviderError) as raised:
                provider.generate(prompt, context, system_prompt)
            self.assertEqual(str(raised.exception), message)
        with self.assertRaisesRegex(ProviderError, "timeout must be more than 0"):
            provider.generate("Go", {}, response_timeout=-1)

    def test_none_is_not_validated(self) -> None:
        GeminiCliProvider(timeout=None, approval_mode=None, include_directories=None, allowed_tools=None)

    def test_unknown_keys_warn(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            GeminiCliProvider(zeta=1, model="m", alpha=2)
        self.assertEqual(
            [str(warning.message) for warning in caught],
            ["Unknown GeminiCliProvider config keys ignored: ['alpha', 'zeta']"],
        )

    def test_the_command_line_is_the_documents(self) -> None:
        self.assertEqual(GeminiCliProvider()._build_args(None), ["-o", "stream-json", "-y"])
        self.assertEqual(GeminiCliProvider(approval_mode="default")._build_args(None), ["-o", "stream-json"])
        configured = GeminiCliProvider(
            model="m", sandbox=True, approval_mode="auto_edit", include_directories=["a", "b"], allowed_tools=["t"]
        )
        self.assertEqual(
            configured._build_args({}),
            ["-o", "stream-json", "--approval-mode", "auto_edit", "-m", "m", "-s", "--include-directories", "a",
             "--include-directories", "b", "--allowed-tools", "t"],
        )

    def test_alhena_is_told_the_configuration(self) -> None:
        configured = GeminiCliProvider(
            model="m", sandbox=True, approval_mode="auto_edit", include_directories=["a", "/b"], allowed_tools=["t"], working_dir="/w"
        )
        arguments = configured._options({"project_root": "/p"}, None, 7).arguments(HERE)
        self.assertEqual(
            arguments,
            ["--approval=auto_edit", "--timeout=7000ms", "--first-event-timeout=7000ms", "--stall-timeout=7000ms", "--dir=/w",
             "--model=m", "--trust", "--sandbox=on", "--include-dir=/w/a", "--include-dir=/b", "--allow-tool=t"],
        )
        arguments = GeminiCliProvider()._options({"project_root": Path("/p")}, None, 7).arguments(HERE)
        self.assertIn("--dir=/p", arguments)

    def test_directories_are_relative_to_the_working_directory(self) -> None:
        options = GeminiCliProvider(working_dir="w", include_directories=["more"])._options(None, None, 7)
        self.assertEqual((options.cwd, options.include_dirs), (Path.cwd() / "w", [Path.cwd() / "w" / "more"]))

    def test_a_prompt_file_elsewhere_can_be_read(self) -> None:
        def told(prompt_file: str) -> Any:
            return GeminiCliProvider(working_dir="/work")._options({"prompt_file": prompt_file}, None, 7).include_dirs

        self.assertEqual((told("prompts/p.md"), told("/prompts/p.md")), ([], [Path("/prompts")]))

    def test_attributes_and_constants_are_the_engines(self) -> None:
        bare = GeminiCliAIProvider()
        self.assertEqual((bare._model, bare._sandbox, bare._approval_mode), (None, False, "yolo"))
        self.assertEqual((bare._include_directories, bare._allowed_tools, bare._working_dir), ([], None, None))
        self.assertEqual(bare._timeout, alhena_aiwf.DEFAULT_TIMEOUT)
        self.assertEqual(alhena_aiwf.FILE_WRITE_TOOLS, {"write_file", "replace"})
        self.assertEqual(alhena_aiwf.VALID_APPROVAL_MODES, {"default", "auto_edit", "yolo"})

    def test_each_name_warns_by_its_name(self) -> None:
        for kind in (GeminiCliProvider, GeminiCliAIProvider):
            with self.assertWarnsRegex(UserWarning, f"Unknown {kind.__name__} config keys ignored"):
                kind({"zeta": 1})

    def test_process_errors_have_the_documents_texts(self) -> None:
        wrap = GeminiCliProvider()._wrap_process_error
        for code, stderr, text in (
            (41, "Set an Auth method", "Gemini CLI authentication error. Run: gemini auth login\nSet an Auth method"),
            (127, "please LOGIN", "Gemini CLI authentication error. Run: gemini auth login\nplease LOGIN"),
            (127, "no such file", "Gemini CLI not found. Install from: https://github.com/google-gemini/gemini-cli"),
            (3, "boom\n", "Gemini CLI failed (exit 3): boom\n"),
        ):
            error = wrap(code, stderr)
            self.assertIsInstance(error, ProviderError)
            self.assertEqual(str(error), text)


@WITH_ALHENA
class Program(unittest.TestCase):
    def test_without_alhena_the_error_says_what_to_do(self) -> None:
        with mock.patch.dict(os.environ, {"ALHENA_BIN": "/nowhere/alhena"}):
            with self.assertRaises(ProviderError) as raised:
                GeminiCliProvider().generate("hello")
        self.assertEqual(
            str(raised.exception),
            "ALHENA_BIN names no program: /nowhere/alhena\nInstall the package `alhena`, or say where it is by ALHENA_BIN.",
        )

    def test_the_full_path_is_resolved(self) -> None:
        self.assertTrue(os.path.isabs(alhena.find_binary()))

    def test_an_alhena_that_is_stuck_is_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            stuck = Path(directory, "alhena")
            stuck.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.2; done\n")
            stuck.chmod(0o755)
            with (
                mock.patch.dict(os.environ, {"ALHENA_BIN": str(stuck)}),
                mock.patch.object(provider, "GRACE", 0.1),
                mock.patch.object(provider, "VALIDATE_TIMEOUT", 0.5),
                mock.patch.object(alhena.process, "GRACE", 0.5),
            ):
                with self.assertRaisesRegex(ProviderError, r"^Gemini CLI timed out after 0\.5s\."):
                    GeminiCliProvider(timeout=0.5).generate("hello")
                with self.assertRaisesRegex(ProviderError, "timed out"):
                    GeminiCliProvider().validate()

    def test_a_stream_is_parsed_and_what_was_skipped_is_logged(self) -> None:
        lines: list[dict[str, Any]] = [
            {"type": "init", "session_id": "s", "model": "m"},
            {"type": "message", "role": "user", "content": "no"},
            {"type": "message", "role": "assistant", "content": "Hel", "delta": True},
            {"type": "tool_use", "tool_name": "write_file", "tool_id": "1", "parameters": {"file_path": "b"}},
            {"type": "tool_use", "tool_name": "replace", "tool_id": "2", "parameters": {"file_path": "a"}},
            {"type": "tool_use", "tool_name": "read_file", "tool_id": "3", "parameters": {"file_path": "r"}},
            {"type": "tool_use", "tool_name": "write_file", "tool_id": "4", "parameters": {"file_path": "failed"}},
            {"type": "tool_result", "tool_id": "1", "status": "success"},
            {"type": "tool_result", "tool_id": "2", "status": "success"},
            {"type": "tool_result", "tool_id": "3", "status": "success"},
            {"type": "tool_result", "tool_id": "4", "status": "error"},
            {"type": "message", "role": "assistant", "content": "lo", "delta": True},
        ]
        stream = "not JSON\n\n" + "\n".join(json.dumps(line) for line in lines) + '\n{"type":"resu'
        with self.assertLogs("alhena_aiwf", logging.WARNING) as logs:
            text, files = GeminiCliProvider()._parse_ndjson_stream(stream.encode())
        self.assertEqual((text, list(files.items())), ("Hello", [("b", None), ("a", None)]))
        self.assertEqual(
            [record.getMessage() for record in logs.records],
            ["Malformed JSON lines (2): ['not JSON', '{\"type\":\"resu']"],
        )
        self.assertEqual(GeminiCliProvider()._parse_ndjson_stream(b""), ("", {}))

    def test_it_fits_into_the_engine_of_the_document_and_into_2_0(self) -> None:
        for engine, names in (
            ("document", ["GeminiCliProvider", "provider_result", "ProviderResult", "ResponseProviderFactory"]),
            ("two", ["GeminiCliAIProvider", "ai_provider_result", "AIProviderResult", "AIProviderFactory"]),
        ):
            done = self.in_engine(engine, str(HERE / "in_engine.py"), *names)
            self.assertEqual((done.stdout, done.returncode), ("ok\n", 0), done.stderr)
            # Whichever of both is imported first.
            done = self.in_engine(engine, "-c", "import alhena_aiwf, aiwf.domain.providers; alhena_aiwf.register()")
            self.assertEqual((done.stderr, done.returncode), ("", 0))

    def test_an_engine_with_other_names_is_refused_and_no_engine_is_none(self) -> None:
        done = self.in_engine("unknown", "-c", "import alhena_aiwf")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"(ImportError|ModuleNotFoundError): ")
        done = self.in_engine("none", "-c", "import alhena_aiwf; print(alhena_aiwf.ProviderError.__module__)")
        self.assertEqual(done.stdout, "alhena_aiwf.engine\n")

    def in_engine(self, engine: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        path = [str(HERE / "engines" / engine), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        return subprocess.run(
            [sys.executable, "-B", *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            capture_output=True,
            text=True,
            timeout=120,
        )


@WITH_ALHENA
class Process(unittest.TestCase):
    """As the engine's own tests have it: what stands in the place of a process answers as the CLI does."""

    def setUp(self) -> None:
        self.process = AsyncMock(returncode=0)
        start = mock.patch("asyncio.create_subprocess_exec", AsyncMock(return_value=self.process))
        self.start = start.start()
        self.addCleanup(start.stop)

    def answer(self, stdout: str, stderr: str = "", code: int = 0) -> None:
        self.process.returncode = code
        self.process.communicate = AsyncMock(return_value=(stdout.encode(), stderr.encode()))

    def failure_of(self) -> str:
        with self.assertRaises(ProviderError) as raised:
            GeminiCliAIProvider().generate("Test")
        return str(raised.exception)

    def test_text_and_files_come_from_its_stream(self) -> None:
        self.answer(
            '{"type":"message","role":"assistant","content":"Created"}\n'
            '{"type":"tool_use","tool_name":"write_file","tool_id":"t","parameters":{"file_path":"/new.txt"}}\n'
            '{"type":"tool_result","tool_id":"t","status":"success"}\n'
        )
        result = GeminiCliAIProvider().generate("Test")
        self.assertEqual((result.response, result.files), ("Created", {"/new.txt": None}))

    def test_its_failures_have_the_engines_texts(self) -> None:
        self.answer("", "Some error message", 1)
        self.assertEqual(self.failure_of(), "Gemini CLI failed (exit 1): Some error message")
        self.answer("", "Authentication failed: not logged in", 1)
        self.assertIn("gemini auth login", self.failure_of())
        self.answer("", "gemini: command not found", 127)
        self.assertEqual(self.failure_of(), alhena_aiwf.NOT_FOUND)

    def test_one_that_cannot_be_started_is_not_found(self) -> None:
        self.start.side_effect = FileNotFoundError("gemini not found")
        self.assertTrue(self.failure_of().startswith(alhena_aiwf.NOT_FOUND))


@gemini_cli
@WITH_CLI
class RealCli(unittest.TestCase):
    """On the real Gemini CLI, in a folder that nobody trusts."""

    def setUp(self) -> None:
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        directory = tempfile.TemporaryDirectory(dir=os.environ["ALHENA_TEST_WORK"])
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)

    def scenario(self, name: str) -> None:
        patch = mock.patch.dict(os.environ, {"GOOGLE_GEMINI_BASE_URL": SCENARIOS[name]})
        patch.start()
        self.addCleanup(patch.stop)

    def provider(self, **config: Any) -> GeminiCliProvider:
        return GeminiCliProvider({"model": "gemini-2.5-flash", "working_dir": str(self.work), **config})

    def failure_of(self, provider: GeminiCliProvider, prompt: str = "Go") -> str:
        with self.assertRaises(ProviderError) as raised:
            provider.generate(prompt)
        return str(raised.exception)

    def test_the_cli_is_found(self) -> None:
        self.provider().validate()

    def test_files_are_written_and_named_in_order(self) -> None:
        self.scenario("files")
        (self.work / "a.txt").write_text("old\n")
        logging.disable(logging.NOTSET)
        with self.assertLogs("alhena_aiwf", logging.INFO) as logs:
            result = self.provider().generate("- write\n- the files", {})
        told = [record.getMessage() for record in logs.records if record.levelno == logging.INFO]
        self.assertRegex(told[0], r"^Gemini CLI session [0-9a-f-]{36}, models gemini-2\.5-flash$")
        self.assertRegex(told[1], r"^Gemini CLI ended with success after \d+ ms: \{'prompt': \d+, ")
        self.assertIsInstance(result, ProviderResult)
        self.assertEqual(result.response, "Writing. Done.")
        self.assertEqual(list(result.files.items()), [("b.txt", None), ("a.txt", None)])
        self.assertEqual((self.work / "a.txt").read_text(), "new\n")
        self.assertEqual((self.work / "b.txt").read_text(), "made\n")

    def test_a_prompt_file_is_named_to_the_model(self) -> None:
        self.scenario("prompt_file")
        (self.work / "prompt.md").write_text("Say it.")
        result = self.provider().generate("never sent", {"prompt_file": "prompt.md"}, system_prompt="Be brief.")
        self.assertEqual(result, ProviderResult(response="It.", files={}))

    def test_an_answer_fits_its_schema_or_has_failed(self) -> None:
        self.scenario("value")
        number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        self.assertEqual(self.provider(schema=number).generate("How many?").response, '{"n":7}')
        (self.work / "schema.json").write_text(json.dumps(number))
        given = str(self.work / "schema.json")
        self.assertEqual(self.provider(schema=given).generate("How many?").response, '{"n":7}')
        self.assertIn("schema", self.failure_of(self.provider(schema={"type": "string"})))
        with self.assertRaisesRegex(ValueError, "schema must be a JSON schema or a file, got: int"):
            self.provider(schema=3)

    def test_a_running_loop_is_no_obstacle(self) -> None:
        self.scenario("prompt_file")

        async def inside() -> ProviderResult:
            return self.provider().generate("Go")

        self.assertEqual(asyncio.run(inside()).response, "It.")

    def test_a_blocked_answer_is_an_error(self) -> None:  # the CLI exits 0
        self.scenario("blocked")
        self.assertEqual(
            self.failure_of(self.provider()),
            "Gemini CLI failed (exit 0): The model response was blocked due to safety settings.",
        )

    def test_an_api_error_is_an_error(self) -> None:
        self.scenario("refused")
        text = self.failure_of(self.provider())
        self.assertTrue(text.startswith("Gemini CLI failed (exit 144): Request contains an invalid argument.\n"), text)
        self.assertNotIn("YOLO", text)

    def test_stderr_that_speaks_of_auth_is_an_authentication_error(self) -> None:
        with mock.patch.dict(os.environ, {"HOME": str(self.work)}):
            del os.environ["GEMINI_API_KEY"], os.environ["GOOGLE_GEMINI_BASE_URL"]
            text = self.failure_of(self.provider())
        self.assertTrue(text.startswith("Gemini CLI authentication error. Run: gemini auth login\n"), text)
        self.assertIn("Please set an Auth method", text)

    def test_any_other_words_are_quoted_with_the_exit_code(self) -> None:
        with mock.patch.dict(os.environ):
            del os.environ["GEMINI_API_KEY"]
            text = self.failure_of(self.provider())
        self.assertTrue(text.startswith("Gemini CLI failed (exit 41): "), text)
        self.assertIn("you must specify the GEMINI_API_KEY environment variable", text)

    def test_time_is_bounded(self) -> None:
        self.scenario("hang")
        text = self.failure_of(self.provider(timeout=6))
        self.assertEqual(
            text,
            "Gemini CLI timed out after 6s. Consider increasing timeout config.\nThe run took longer than 6 s",
        )

    def test_warnings_of_the_outcome_reach_the_log(self) -> None:
        self.scenario("unasked")
        logging.disable(logging.NOTSET)
        with self.assertLogs("alhena_aiwf", logging.WARNING) as logs:
            self.provider(approval_mode="default").generate("Go")
        self.assertIn("write_file", "\n".join(record.getMessage() for record in logs.records))

    def test_without_the_cli_it_is_not_found(self) -> None:
        # Whatever is installed on this machine.
        blind = self.work / "alhena"
        blind.write_text(f"#!/bin/sh\nexec '{os.environ['ALHENA_BIN']}' \"$@\" --gemini /nonexistent/gemini\n")
        blind.chmod(0o755)
        with mock.patch.dict(os.environ, {"ALHENA_BIN": str(blind)}):
            self.assertEqual(self.failure_of(self.provider()), alhena_aiwf.NOT_FOUND)
            with self.assertRaises(ProviderError) as raised:
                self.provider().validate()
        self.assertEqual(str(raised.exception), alhena_aiwf.NOT_FOUND)

    def test_a_directory_that_is_not_there_is_not_called_a_missing_cli(self) -> None:
        provider = self.provider(working_dir=str(self.work / "gone"))
        for call in (provider.validate, lambda: provider.generate("Go")):
            with self.assertRaisesRegex(ProviderError, "gone is not a directory"):
                call()


if __name__ == "__main__":
    unittest.main()
