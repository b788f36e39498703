"""Tests of the provider. Those on the real CLI run when `ALHENA_TEST_SCENARIOS` names the addresses of a scripted API:
`cargo xtask test real_hosts` sets everything up.
"""

import asyncio
import json
import logging
import os
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import gemini_cli_provider
from gemini_cli_provider import GeminiCliProvider, ProviderError, ProviderResult

SCENARIOS = json.loads(os.environ.get("ALHENA_TEST_SCENARIOS", "{}"))
WITH_ALHENA = unittest.skipUnless(os.environ.get("ALHENA_BIN"), "needs ALHENA_BIN")
WITH_CLI = unittest.skipUnless(SCENARIOS, "needs ALHENA_TEST_SCENARIOS")


class Configuration(unittest.TestCase):
    def refuse(self, message, error=ValueError, **config):
        with self.assertRaises(error) as raised:
            GeminiCliProvider(config)
        self.assertEqual(str(raised.exception), message)

    def test_metadata_needs_no_instance(self):
        self.assertEqual(
            json.dumps(GeminiCliProvider.get_metadata()),
            '{"name": "gemini-cli", "description": "Gemini CLI AI agent via subprocess", "requires_config": false, '
            '"config_keys": ["model", "sandbox", "approval_mode", "include_directories", "allowed_tools", "working_dir", "timeout"], '
            '"default_response_timeout": 600, "fs_ability": "local-write"}',
        )

    def test_mapping_and_keywords_are_the_same(self):
        for provider in (
            GeminiCliProvider({"model": "m", "timeout": 5}),
            GeminiCliProvider(model="m", timeout=5),
            GeminiCliProvider({"model": "n", "timeout": 5}, model="m"),
        ):
            self.assertEqual(provider.config, {"model": "m", "timeout": 5})
        self.assertEqual(GeminiCliProvider(None).config, {})

    def test_wrong_values_are_refused(self):
        self.refuse("timeout must be > 0", timeout=0)
        self.refuse("timeout must be > 0", timeout=-1)
        self.refuse("approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: 'x'", approval_mode="x")
        self.refuse("approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: \"it's\"", approval_mode="it's")
        self.refuse("include_directories must be a list, got: str", include_directories="src")
        self.refuse("allowed_tools must be a list, got: tuple", allowed_tools=("read_file",))

    def test_none_is_not_validated(self):
        GeminiCliProvider(timeout=None, approval_mode=None, include_directories=None, allowed_tools=None)

    def test_unknown_keys_warn(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            GeminiCliProvider(zeta=1, model="m", alpha=2)
        self.assertEqual(
            [str(warning.message) for warning in caught],
            ["Unknown GeminiCliProvider config keys ignored: ['alpha', 'zeta']"],
        )

    def test_arguments_follow_the_configuration(self):
        self.assertEqual(GeminiCliProvider()._build_args(None), ["run", "--as", "aiwf", "--trust", "--approval", "yolo"])
        provider = GeminiCliProvider(
            model="m", sandbox=True, approval_mode="auto_edit", include_directories=["a", "b"], allowed_tools=["t"], working_dir="w"
        )
        self.assertEqual(
            provider._build_args(None),
            ["run", "--as", "aiwf", "--trust", "--approval", "auto_edit", "--model=m", "--sandbox=on", "--dir=w",
             "--include-dir=a", "--include-dir=b", "--allow-tool=t"],
        )
        self.assertEqual(GeminiCliProvider()._build_args({"project_root": Path("/p")})[-1], "--dir=/p")

    def test_a_prompt_file_elsewhere_can_be_read(self):
        args = GeminiCliProvider(working_dir="/work")._build_args
        self.assertNotIn("--include-dir=/work", args({"prompt_file": "prompts/p.md"}))
        self.assertIn("--include-dir=/prompts", args({"prompt_file": "/prompts/p.md"}))

    def test_process_errors_have_the_documents_texts(self):
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


class Program(unittest.TestCase):
    def test_without_alhena_the_error_says_what_to_do(self):
        with mock.patch.dict(os.environ, {"PATH": ""}), mock.patch.dict(os.environ):
            os.environ.pop("ALHENA_BIN", None)
            with self.assertRaises(ProviderError) as raised:
                GeminiCliProvider().generate("hello")
        self.assertEqual(str(raised.exception), "alhena not found. Put it on PATH, or say where it is by ALHENA_BIN.")

    def test_the_full_path_is_resolved(self):
        with mock.patch.dict(os.environ), mock.patch("shutil.which", return_value="C:\\tools\\alhena.cmd") as which:
            os.environ.pop("ALHENA_BIN", None)
            self.assertEqual(gemini_cli_provider._alhena(), "C:\\tools\\alhena.cmd")
        which.assert_called_once_with("alhena")

    @WITH_ALHENA
    def test_a_stream_is_parsed(self):
        lines = [
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
        text, files = GeminiCliProvider()._parse_ndjson_stream(stream.encode())
        self.assertEqual((text, list(files.items())), ("Hello", [("b", None), ("a", None)]))
        self.assertEqual(GeminiCliProvider()._parse_ndjson_stream(b""), ("", {}))


@WITH_CLI
class RealCli(unittest.TestCase):
    """On the real Gemini CLI, in a folder that nobody trusts."""

    def setUp(self):
        logging.disable(logging.CRITICAL)
        self.addCleanup(logging.disable, logging.NOTSET)
        directory = tempfile.TemporaryDirectory(dir=os.environ["ALHENA_TEST_WORK"])
        self.addCleanup(directory.cleanup)
        self.work = Path(directory.name)

    def scenario(self, name):
        patch = mock.patch.dict(os.environ, {"GOOGLE_GEMINI_BASE_URL": SCENARIOS[name]})
        patch.start()
        self.addCleanup(patch.stop)

    def provider(self, **config):
        return GeminiCliProvider({"model": "gemini-2.5-flash", "working_dir": str(self.work), **config})

    def fail(self, provider, prompt="Go"):
        with self.assertRaises(ProviderError) as raised:
            provider.generate(prompt)
        return str(raised.exception)

    def test_the_cli_is_found(self):
        self.provider().validate()

    def test_files_are_written_and_named_in_order(self):
        self.scenario("files")
        (self.work / "a.txt").write_text("old\n")
        logging.disable(logging.NOTSET)
        with self.assertLogs("gemini_cli_provider", logging.INFO) as logs:
            result = self.provider().generate("- write\n- the files", {})
        told = [record.getMessage() for record in logs.records]
        self.assertRegex(told[0], r"^Gemini CLI session [0-9a-f-]{36}, models gemini-2\.5-flash$")
        self.assertRegex(told[1], r"^Gemini CLI ended with success after \d+ ms: \{'prompt': \d+, ")
        self.assertIsInstance(result, ProviderResult)
        self.assertEqual(result.response, "Writing. Done.")
        self.assertEqual(list(result.files.items()), [("b.txt", None), ("a.txt", None)])
        self.assertEqual((self.work / "a.txt").read_text(), "new\n")
        self.assertEqual((self.work / "b.txt").read_text(), "made\n")

    def test_a_prompt_file_is_named_to_the_model(self):
        self.scenario("prompt_file")
        (self.work / "prompt.md").write_text("Say it.")
        result = self.provider().generate("never sent", {"prompt_file": "prompt.md"}, system_prompt="Be brief.")
        self.assertEqual(result, ProviderResult(response="It.", files={}))

    def test_a_running_loop_is_no_obstacle(self):
        self.scenario("prompt_file")

        async def inside():
            return self.provider().generate("Go")

        self.assertEqual(asyncio.run(inside()).response, "It.")

    def test_a_blocked_answer_is_an_error(self):  # the CLI exits 0
        self.scenario("blocked")
        self.assertEqual(
            self.fail(self.provider()),
            "Gemini CLI failed (exit 0): The model response was blocked due to safety settings.",
        )

    def test_an_api_error_is_an_error(self):
        self.scenario("refused")
        text = self.fail(self.provider())
        self.assertTrue(text.startswith("Gemini CLI failed (exit 144): "), text)
        self.assertIn("Request contains an invalid argument.", text)

    def test_stderr_that_speaks_of_auth_is_an_authentication_error(self):
        with mock.patch.dict(os.environ, {"HOME": str(self.work)}):
            del os.environ["GEMINI_API_KEY"], os.environ["GOOGLE_GEMINI_BASE_URL"]
            text = self.fail(self.provider())
        self.assertTrue(text.startswith("Gemini CLI authentication error. Run: gemini auth login\n"), text)
        self.assertIn("Please set an Auth method", text)

    def test_any_other_words_are_quoted_with_the_exit_code(self):
        with mock.patch.dict(os.environ):
            del os.environ["GEMINI_API_KEY"]
            text = self.fail(self.provider())
        self.assertTrue(text.startswith("Gemini CLI failed (exit 41): "), text)
        self.assertIn("you must specify the GEMINI_API_KEY environment variable", text)

    def test_time_is_bounded(self):
        self.scenario("hang")
        text = self.fail(self.provider(timeout=6))
        self.assertEqual(text, "Gemini CLI failed (exit 124): The run took longer than 6 s")

    def test_without_the_cli_it_is_not_found(self):
        # Whatever is installed on this machine.
        blind = self.work / "alhena"
        blind.write_text(f"#!/bin/sh\nexec '{os.environ['ALHENA_BIN']}' \"$@\" --gemini /nonexistent/gemini\n")
        blind.chmod(0o755)
        with mock.patch.dict(os.environ, {"ALHENA_BIN": str(blind)}):
            self.assertEqual(self.fail(self.provider()), gemini_cli_provider.NOT_FOUND)
            with self.assertRaises(ProviderError) as raised:
                self.provider().validate()
        self.assertEqual(str(raised.exception), gemini_cli_provider.NOT_FOUND)


if __name__ == "__main__":
    unittest.main()
