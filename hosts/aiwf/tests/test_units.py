"""Unit tests of the provider, without Gemini CLI: a mock stands in the place of the process. Together with those of
`test_provider.py` they are at least the 52 of the engine's document (A-40).
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
from pathlib import Path
from typing import Any
from unittest import mock
from unittest.mock import AsyncMock

import alhena_aiwf
from alhena_aiwf import GeminiCliProvider, ProviderError, ProviderResult, provider

HERE = Path(__file__).parent
SOURCE = Path(alhena_aiwf.__file__).parent.parent
WITH_ALHENA = unittest.skipUnless(os.environ.get("ALHENA_BIN"), "needs ALHENA_BIN")


class Defaults(unittest.TestCase):
    def test_no_model_is_chosen(self) -> None:
        self.assertIsNone(GeminiCliProvider()._model)

    def test_the_sandbox_is_off(self) -> None:
        self.assertIs(GeminiCliProvider()._sandbox, False)

    def test_everything_is_approved(self) -> None:
        self.assertEqual(GeminiCliProvider()._approval_mode, "yolo")

    def test_a_run_may_take_ten_minutes(self) -> None:
        self.assertEqual(GeminiCliProvider()._timeout, 600)

    def test_none_means_the_default(self) -> None:
        self.assertEqual(GeminiCliProvider({"timeout": None, "approval_mode": None})._timeout, 600)

    def test_every_key_is_taken(self) -> None:
        config = {
            "model": "m", "sandbox": True, "approval_mode": "auto_edit", "include_directories": ["/d"], "allowed_tools": ["t"],
            "working_dir": "/w", "timeout": 5,
        }
        taken = GeminiCliProvider(config)
        self.assertEqual(
            (taken._model, taken._sandbox, taken._approval_mode, taken._include_directories, taken._allowed_tools,
             taken._working_dir, taken._timeout),
            ("m", True, "auto_edit", ["/d"], ["t"], "/w", 5),
        )

    def test_known_keys_do_not_warn(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            GeminiCliProvider(dict.fromkeys(GeminiCliProvider.get_metadata()["config_keys"]))

    def test_metadata_cannot_be_changed_for_others(self) -> None:
        GeminiCliProvider.get_metadata()["config_keys"].clear()
        self.assertEqual(len(GeminiCliProvider.get_metadata()["config_keys"]), 7)


class Refused(unittest.TestCase):
    def refused(self, **config: Any) -> str:
        with self.assertRaises(ValueError) as raised:
            GeminiCliProvider(config)
        return str(raised.exception)

    def test_a_timeout_of_zero(self) -> None:
        self.assertEqual(self.refused(timeout=0), "timeout must be > 0")

    def test_a_negative_timeout(self) -> None:
        self.assertEqual(self.refused(timeout=-0.5), "timeout must be > 0")

    def test_an_infinite_timeout(self) -> None:
        self.assertEqual(self.refused(timeout=float("inf")), "timeout must be > 0")

    def test_a_timeout_that_is_a_truth_value(self) -> None:
        self.assertEqual(self.refused(timeout=True), "timeout must be a number, got: bool")

    def test_an_unknown_mode(self) -> None:
        expected = "approval_mode must be one of ['auto_edit', 'default', 'yolo'], got: 'plan'"
        self.assertEqual(self.refused(approval_mode="plan"), expected)

    def test_directories_that_are_no_list(self) -> None:
        self.assertEqual(self.refused(include_directories={"a"}), "include_directories must be a list, got: set")

    def test_tools_that_are_no_list(self) -> None:
        self.assertEqual(self.refused(allowed_tools="read_file"), "allowed_tools must be a list, got: str")

    def test_a_model_that_is_no_text(self) -> None:
        self.assertEqual(self.refused(model=5), "model must be a string, got: int")


class CommandLine(unittest.TestCase):
    def args(self, **config: Any) -> list[str]:
        return GeminiCliProvider(config)._build_args(None)

    def test_it_asks_for_the_stream(self) -> None:
        self.assertEqual(self.args()[:2], ["-o", "stream-json"])

    def test_yolo_is_a_switch(self) -> None:
        self.assertEqual(self.args(approval_mode="yolo")[2:], ["-y"])

    def test_the_default_mode_needs_nothing(self) -> None:
        self.assertEqual(self.args(approval_mode="default")[2:], [])

    def test_auto_edit_is_an_option(self) -> None:
        self.assertEqual(self.args(approval_mode="auto_edit")[2:], ["--approval-mode", "auto_edit"])

    def test_the_model(self) -> None:
        self.assertEqual(self.args(model="m")[-2:], ["-m", "m"])

    def test_the_sandbox(self) -> None:
        self.assertEqual(self.args(sandbox=True)[-1], "-s")
        self.assertNotIn("-s", self.args(sandbox=False))

    def test_each_directory(self) -> None:
        self.assertEqual(self.args(include_directories=["a", "b"])[-4:], ["--include-directories", "a", "--include-directories", "b"])

    def test_each_tool(self) -> None:
        self.assertEqual(self.args(allowed_tools=["a", "b"])[-4:], ["--allowed-tools", "a", "--allowed-tools", "b"])

    def test_an_empty_list_of_tools_is_nothing(self) -> None:
        self.assertNotIn("--allowed-tools", self.args(allowed_tools=[]))


class Reading(unittest.TestCase):
    """What `generate` makes of the command line (A-03)."""

    def test_it_is_read_back_as_it_was_built(self) -> None:
        config: dict[str, Any] = {
            "model": "m", "sandbox": True, "approval_mode": "auto_edit", "include_directories": ["a"], "allowed_tools": ["t"]
        }
        told = provider._read_args(GeminiCliProvider(config)._build_args(None))
        self.assertEqual(told, provider._Told("auto_edit", "m", True, ["a"], ["t"], []))

    def test_every_mode_is_read_back(self) -> None:
        for mode in alhena_aiwf.VALID_APPROVAL_MODES:
            self.assertEqual(provider._read_args(GeminiCliProvider(approval_mode=mode)._build_args(None)).approval, mode)

    def test_values_that_look_like_options_stay_values(self) -> None:
        told = provider._read_args(GeminiCliProvider(model="-s", include_directories=["--yolo"])._build_args(None))
        self.assertEqual((told.model, told.sandbox, told.include_directories), ("-s", False, ["--yolo"]))

    def test_long_names_and_values_behind_an_equals_sign(self) -> None:
        told = provider._read_args(["--output-format=json", "--model=m", "--yolo", "--sandbox", "--allowed-tools=t"])
        self.assertEqual(told, provider._Told("yolo", "m", True, [], ["t"], []))

    def test_a_comma_separates_directories_and_tools(self) -> None:
        told = provider._read_args(["--include-directories", "a, b,", "--allowed-tools=t,u", "--include-directories", "c"])
        self.assertEqual((told.include_directories, told.allowed_tools, told.others), (["a", "b", "c"], ["t", "u"], []))

    def test_a_switch_may_have_a_value(self) -> None:
        told = provider._read_args(["--yolo=true", "--sandbox=true"])
        self.assertEqual((told.approval, told.sandbox, told.others), ("yolo", True, []))
        told = provider._read_args(["--yolo=false", "--sandbox=false"])
        self.assertEqual((told.approval, told.sandbox, told.others), ("default", False, []))

    def test_what_alhena_has_no_option_for_is_for_the_cli(self) -> None:
        self.assertEqual(provider._read_args(["--debug", "-e", "x"]).others, ["--debug", "-e", "x"])

    def test_an_option_without_its_value_is_an_error(self) -> None:
        with self.assertRaisesRegex(ProviderError, "-m needs a value"):
            provider._read_args(["-m"])


@WITH_ALHENA
class Stream(unittest.TestCase):
    def parse(self, *events: Any) -> tuple[str, dict[str, None]]:
        lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
        return GeminiCliProvider()._parse_ndjson_stream("\n".join(lines).encode())

    def said(self, content: str, role: str = "assistant") -> dict[str, Any]:
        return {"type": "message", "role": role, "content": content}

    def used(self, tool: str, path: str, id: str = "1", status: str = "success") -> list[dict[str, Any]]:
        return [
            {"type": "tool_use", "tool_name": tool, "tool_id": id, "parameters": {"file_path": path}},
            {"type": "tool_result", "tool_id": id, "status": status},
        ]

    def test_text(self) -> None:
        self.assertEqual(self.parse(self.said("Hello")), ("Hello", {}))

    def test_parts_are_joined_in_order(self) -> None:
        self.assertEqual(self.parse(self.said("a "), {**self.said("b"), "delta": True})[0], "a b")

    def test_the_prompt_is_not_the_answer(self) -> None:
        self.assertEqual(self.parse(self.said("no", "user"), self.said("yes"))[0], "yes")

    def test_a_file_that_was_written(self) -> None:
        self.assertEqual(self.parse(*self.used("write_file", "/a"))[1], {"/a": None})

    def test_a_file_that_was_edited(self) -> None:
        self.assertEqual(self.parse(*self.used("replace", "/a"))[1], {"/a": None})

    def test_a_file_that_was_read_does_not_count(self) -> None:
        self.assertEqual(self.parse(*self.used("read_file", "/a"))[1], {})

    def test_a_write_that_failed_does_not_count(self) -> None:
        self.assertEqual(self.parse(*self.used("write_file", "/a", status="error"))[1], {})

    def test_a_write_without_a_result_does_not_count(self) -> None:
        self.assertEqual(self.parse(self.used("write_file", "/a")[0])[1], {})

    def test_a_file_counts_once_and_in_the_order_of_writing(self) -> None:
        events = self.used("write_file", "/b") + self.used("replace", "/a", "2") + self.used("replace", "/b", "3")
        self.assertEqual(list(self.parse(*events)[1]), ["/b", "/a"])

    def test_results_are_matched_by_their_id(self) -> None:
        (first, first_result), (second, second_result) = self.used("write_file", "/a"), self.used("write_file", "/b", "2", "error")
        self.assertEqual(self.parse(first, second, second_result, first_result)[1], {"/a": None})

    def test_nothing(self) -> None:
        self.assertEqual(self.parse(), ("", {}))

    def test_blank_lines(self) -> None:
        self.assertEqual(self.parse("", "  ", self.said("Hello"), "")[0], "Hello")

    def test_a_line_that_is_no_json_is_logged(self) -> None:
        with self.assertLogs("alhena_aiwf", logging.WARNING) as logs:
            self.assertEqual(self.parse(self.said("a"), "nonsense", self.said("b"))[0], "ab")
        self.assertEqual([record.getMessage() for record in logs.records], ["Malformed JSON lines (1): ['nonsense']"])

    def test_a_last_line_that_was_cut_off(self) -> None:
        with self.assertLogs("alhena_aiwf", logging.WARNING):
            self.assertEqual(self.parse(self.said("whole"), '{"type":"mess')[0], "whole")


@WITH_ALHENA
class Generate(unittest.TestCase):
    """With a mock in the place of the process."""

    def setUp(self) -> None:
        self.process = AsyncMock(returncode=0)
        self.answer('{"type":"message","role":"assistant","content":"Hello"}\n')
        patch = mock.patch("asyncio.create_subprocess_exec", AsyncMock(return_value=self.process))
        self.start = patch.start()
        self.addCleanup(patch.stop)

    def answer(self, stdout: str, stderr: str = "", code: int = 0) -> None:
        self.process.returncode = code
        self.process.communicate = AsyncMock(return_value=(stdout.encode(), stderr.encode()))

    def arguments(self) -> list[str]:
        """What `alhena` was started with."""
        return [str(word) for word in self.start.call_args[0][1:]]

    def stdin(self) -> bytes:
        sent: bytes = self.process.communicate.call_args[0][0]
        return sent

    def failure_of(self, **config: Any) -> str:
        with self.assertRaises(ProviderError) as raised:
            GeminiCliProvider(config).generate("Go")
        return str(raised.exception)

    def test_the_answer_is_a_result_of_the_engine(self) -> None:
        self.assertEqual(GeminiCliProvider().generate("Go"), ProviderResult(response="Hello", files={}))

    def test_the_prompt_goes_over_stdin(self) -> None:
        GeminiCliProvider().generate("-x is an option?")
        self.assertEqual((self.stdin(), self.arguments()[-1]), (b"-x is an option?", "-"))

    def test_a_prompt_file_is_named_and_the_prompt_not_sent(self) -> None:
        GeminiCliProvider().generate("never", {"prompt_file": "p.md"})
        self.assertEqual(self.stdin(), b"Process the prompt in p.md")
        self.assertIn("--prompt-by=flag", self.arguments())

    def test_the_configuration_wins_over_the_project(self) -> None:
        GeminiCliProvider(working_dir="/w").generate("Go", {"project_root": "/p"})
        self.assertIn("--dir=/w", self.arguments())

    def test_the_project_is_where_it_works(self) -> None:
        GeminiCliProvider().generate("Go", {"project_root": "/p"})
        self.assertIn("--dir=/p", self.arguments())

    def test_the_time_limit_is_the_configurations(self) -> None:
        GeminiCliProvider(timeout=7).generate("Go", response_timeout=9)
        self.assertIn("--timeout=7000ms", self.arguments())

    def test_without_one_it_is_the_callers(self) -> None:
        GeminiCliProvider().generate("Go", response_timeout=9)
        self.assertIn("--timeout=9000ms", self.arguments())

    def test_the_command_line_is_what_build_args_says(self) -> None:
        class Own(GeminiCliProvider):
            def _build_args(self, context: Any) -> list[str]:
                return ["-o", "stream-json", "-m", "own", "--approval-mode", "plan", "--debug"]

        Own(model="configured", approval_mode="yolo").generate("Go")
        arguments = self.arguments()
        self.assertIn("--model=own", arguments)
        self.assertIn("--approval=plan", arguments)
        self.assertNotIn("--model=configured", arguments)
        self.assertEqual(arguments[-3:], ["-", "--", "--debug"])

    def test_a_failure_has_its_exit_code_and_stderr(self) -> None:
        self.answer("", "boom", 7)
        self.assertEqual(self.failure_of(), "Gemini CLI failed (exit 7): boom")

    def test_a_failed_sign_in_comes_before_the_exit_code(self) -> None:
        self.answer("", "Please LOGIN", 127)
        self.assertEqual(self.failure_of(), "Gemini CLI authentication error. Run: gemini auth login\nPlease LOGIN")

    def test_a_missing_cli_is_told_with_where_to_get_it(self) -> None:
        self.answer("", "no such file", 127)
        self.assertEqual(self.failure_of(), alhena_aiwf.NOT_FOUND)

    def test_time_that_is_over_is_told_with_the_limit(self) -> None:
        self.process.communicate = AsyncMock(side_effect=asyncio.TimeoutError)
        self.assertEqual(self.failure_of(timeout=300), "Gemini CLI timed out after 300s. Consider increasing timeout config.")

    def test_stderr_of_a_success_is_in_the_log(self) -> None:
        self.answer('{"type":"message","role":"assistant","content":"Hello"}\n', "a note\n")
        with self.assertLogs("alhena_aiwf", logging.DEBUG) as logs:
            GeminiCliProvider().generate("Go")
        self.assertIn("alhena: a note", [record.getMessage() for record in logs.records])


class Installed(unittest.TestCase):
    """Where the wheel is installed, its `.pth` file registers the provider."""

    def python(self, engine: str, code: str, stderr: str = "", **variables: str) -> str:
        with tempfile.TemporaryDirectory() as base:
            environment = {**os.environ, "PYTHONUSERBASE": base, **variables}
            where = [sys.executable, "-m", "site", "--user-site"]
            site = Path(subprocess.run(where, env=environment, capture_output=True, text=True).stdout.strip())
            site.mkdir(parents=True)
            (site / "alhena_aiwf.pth").write_bytes((SOURCE / "alhena_aiwf.pth").read_bytes())
            others = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
            environment["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(HERE / "engines" / engine), *others])
            done = subprocess.run(
                [sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
            )
        self.assertEqual(done.stderr[: len(stderr)] if stderr else done.stderr, stderr)
        return done.stdout.strip()

    def test_the_engine_knows_it_without_a_word(self) -> None:
        code = (
            "from aiwf.domain.providers import AIProviderFactory as factory;"
            "print(*(type(factory.create(name, {})).__module__ for name in ('gemini-cli', 'manual')))"
        )
        self.assertEqual(self.python("shipped", code), "alhena_aiwf.provider aiwf.domain.providers.manual_provider")

    def test_whichever_is_imported_first(self) -> None:
        code = (
            "import alhena_aiwf, aiwf.domain.providers as engine;"
            "print(type(engine.AIProviderFactory.create('gemini-cli', {})).__module__)"
        )
        self.assertEqual(self.python("shipped", code), "alhena_aiwf.provider")

    def test_it_can_be_switched_off(self) -> None:
        code = "import aiwf.domain.providers as e; print(type(e.AIProviderFactory.create('gemini-cli', {})).__module__)"
        self.assertEqual(self.python("shipped", code, ALHENA_AIWF="off"), "aiwf.domain.providers.gemini_cli_provider")

    def test_nothing_is_imported_before_the_engine_is(self) -> None:
        code = "import sys; print([name for name in sys.modules if name.startswith(('aiwf', 'alhena'))])"
        self.assertEqual(self.python("shipped", code), "['alhena_aiwf_hook']")

    def test_an_engine_that_it_does_not_fit_works_with_its_own(self) -> None:
        said = "alhena-aiwf: the provider is not registered, so aiwf uses its own: "
        self.assertEqual(self.python("unfit", "import aiwf.domain.providers as engine; print(engine.OWN)", said), "own")

    def test_no_error_of_the_registration_reaches_the_engine(self) -> None:
        code = (
            "import sys, types;"
            "stub = types.SimpleNamespace(register=lambda provider: 1 / 0, GeminiCliAIProvider=object);"
            "sys.modules.update({'alhena_aiwf.engine': stub, 'alhena_aiwf.provider': stub});"
            "import aiwf.domain.providers as e; print(type(e.AIProviderFactory.create('gemini-cli', {})).__module__)"
        )
        said = "alhena-aiwf: the provider is not registered, so aiwf uses its own: ZeroDivisionError("
        self.assertEqual(self.python("shipped", code, said), "aiwf.domain.providers.gemini_cli_provider")


if __name__ == "__main__":
    unittest.main()
