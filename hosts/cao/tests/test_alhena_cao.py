"""Tests of the provider inside CAO itself. They need the package cli-agent-orchestrator on PYTHONPATH; those on the real
CLI run when `ALHENA_TEST_SCENARIOS` names the addresses of a scripted API: `cargo xtask test real_hosts` sets all up.
"""

import io
import json
import os
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import alhena
import alhena_cao
import alhena_cao.provider as cao_provider
from alhena_cao import hook
import cli_agent_orchestrator
from cli_agent_orchestrator.constants import CAO_HOME_DIR, PROVIDERS
from cli_agent_orchestrator.models.provider import ProviderType
from cli_agent_orchestrator.models.terminal import Terminal, TerminalInputBlockedError, TerminalStatus
from cli_agent_orchestrator.providers.base import OutputExtractionError
from cli_agent_orchestrator.providers.manager import ProviderManager, provider_manager
from cli_agent_orchestrator.services import terminal_service
from cli_agent_orchestrator.services.status_monitor import status_monitor

WITH_ALHENA = unittest.skipUnless(os.environ.get("ALHENA_BIN"), "needs ALHENA_BIN")
WITH_CLI = unittest.skipUnless(os.environ.get("ALHENA_TEST_SCENARIOS"), "needs ALHENA_TEST_SCENARIOS")

IDLE = """
────────────────────────────────────────────────────────────
 Shift+Tab to accept edits
▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
 >   Type your message or @path/to/file
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
 workspace (/directory)        sandbox            /model
 ~/project           no sandbox         gemini-2.5-flash
"""
ANSWERED = f"""
▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
 > say hello
▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀
✦ Hello! An Error: is only a word here.

    code
{IDLE}"""
WORKING = ANSWERED.replace("\n────", "\n ⠋ Thinking... (esc to cancel, 4s)\n────", 1)


# What the screen draws in another way.
MARKDOWN = """# A heading

Some **bold** text, and [a link](https://127.0.0.1/x).

```python
print("hi")
```

| a | b |
| --- | --- |
| 1 | 2 |"""


# Modules of CAO: one that is added to, one that is not as expected, and one that comes later.
PARTS = ["constants", "utils.enforcement", "cli.commands.launch"]


def provider(**options: Any) -> cao_provider.GeminiCliProvider:
    return alhena_cao.GeminiCliProvider("0123abcd", "cao-none", "window", **options)


class Registration(unittest.TestCase):
    def test_cao_knows_the_provider_everywhere(self) -> None:  # D-01, D-44
        member = getattr(ProviderType, "GEMINI_CLI")
        self.assertEqual(ProviderType("gemini_cli"), member)
        self.assertIn("gemini_cli", PROVIDERS)
        self.assertIn(member, list(ProviderType))
        record = {"id": "0123abcd", "name": "w", "provider": "gemini_cli", "session_name": "cao-s", "agent_profile": "developer"}
        terminal = Terminal.model_validate(record)
        self.assertEqual(json.loads(terminal.model_dump_json())["provider"], "gemini_cli")
        self.assertIs(ProviderManager.provider_class("gemini_cli"), alhena_cao.GeminiCliProvider)
        made = provider_manager.create_provider("gemini_cli", "0123abcd", "cao-s", "w", "developer", model="m")
        self.assertIs(provider_manager.get_provider("0123abcd"), made)
        self.assertTrue(provider_manager.cleanup_provider("0123abcd"))

    def test_it_is_switched_on_by_the_file_of_the_wheel_and_off_by_a_variable(self) -> None:
        ask = "from cli_agent_orchestrator.constants import PROVIDERS as all; print('gemini_cli' in all)"
        for variables, known in [({}, "True"), ({"ALHENA_CAO": "off"}, "False"), ({"PYTHONUSERBASE": "/proc/nowhere"}, "False")]:
            done = subprocess.run(
                [sys.executable, "-c", ask], env={**switch_on(), **variables}, capture_output=True, text=True, check=False
            )
            self.assertEqual((done.stdout.strip(), done.stderr), (known, ""))

    def test_a_start_of_python_loads_nothing_of_cao(self) -> None:
        ask = "import sys; print([name for name in sys.modules if name.startswith(('cli_agent', 'alhena'))])"
        done = subprocess.run([sys.executable, "-c", ask], env=switch_on(), capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.strip(), "['alhena_cao.hook', 'alhena_cao']")

    def test_without_cao_its_programs_say_so(self) -> None:
        sources = {str(Path(str(module.__file__)).parents[1]) for module in (alhena, alhena_cao)}
        done = subprocess.run(
            [sys.executable, "-m", "alhena_cao", "cli"],
            env={"PYTHONPATH": os.pathsep.join(sources)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, "^CAO is not installed for ")

    def test_an_unsupported_release_of_cao_is_left_as_it_is_with_one_clear_message(self) -> None:
        ask = (
            "import cli_agent_orchestrator.services.terminal_service as service, cli_agent_orchestrator.constants as constants\n"
            "from cli_agent_orchestrator.providers.manager import ProviderManager\n"
            "print('gemini_cli' in constants.PROVIDERS, 'gemini_cli' in service.RUNTIME_SKILL_PROMPT_PROVIDERS)\n"
            "print(ProviderManager.create_provider.__module__)"
        )
        for version in ["2.5.3", "2.6.0", "3.0", "unknown"]:
            described = Path(os.environ["TMPDIR"]) / f"release-{version}"
            metadata = described / f"cli_agent_orchestrator-{version}.dist-info" / "METADATA"
            metadata.parent.mkdir(parents=True, exist_ok=True)
            metadata.write_text(f"Metadata-Version: 2.1\nName: cli-agent-orchestrator\nVersion: {version}\n")
            variables = switch_on()
            variables["PYTHONPATH"] = os.pathsep.join([str(described), variables["PYTHONPATH"]])
            done = subprocess.run([sys.executable, "-c", ask], env=variables, capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout.split(), ["False", "False", "cli_agent_orchestrator.providers.manager"])
            reason = f"alhena-cao: the provider gemini_cli is not available: CAO {version} is installed. "
            self.assertTrue(done.stderr.startswith(reason), done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn("cli-agent-orchestrator>=2.5.4,<2.6", done.stderr)

    def test_the_supported_releases_are_those_of_the_package(self) -> None:
        project = Path(alhena_cao.__file__).parents[2] / "pyproject.toml"
        self.assertIn(f'"{hook.DISTRIBUTION}{hook.SUPPORTED}"', project.read_text())
        self.assertIsNone(hook.unsupported())
        needed = hook.Addition(mock.Mock(), ("NO_SUCH_TABLE",))
        with mock.patch.dict(hook.ADDITIONS, {"cli_agent_orchestrator.constants": needed}):
            self.assertRegex(str(hook.unsupported()), "has no NO_SUCH_TABLE in cli_agent_orchestrator.constants$")

    def test_a_part_that_cannot_be_added_takes_the_others_back(self) -> None:
        constants, other, late = (ModuleType(f"cli_agent_orchestrator.{name}") for name in PARTS)
        setattr(constants, "PROVIDERS", ["codex"])
        setattr(late, "PROVIDERS_REQUIRING_WORKSPACE_ACCESS", set())
        finder = hook._Finder()
        finder.add(constants)
        self.assertEqual(getattr(constants, "PROVIDERS"), ["codex", "gemini_cli"])
        with mock.patch("sys.stderr", new_callable=io.StringIO) as said:
            finder.add(other)
            finder.add(late)
        self.assertEqual(getattr(constants, "PROVIDERS"), ["codex"])
        self.assertEqual(getattr(late, "PROVIDERS_REQUIRING_WORKSPACE_ACCESS"), set())
        self.assertEqual(said.getvalue().count("the provider gemini_cli is not available"), 1)

    def test_an_addition_that_fails_halfway_leaves_nothing_behind_and_raises_nothing(self) -> None:
        class Rejects(dict[str, str]):
            def __setitem__(self, key: str, value: str) -> None:
                raise RuntimeError("read only")

        class Odd(list[str]):
            def __contains__(self, name: object) -> bool:
                raise ValueError("no names")

        def reported(_terminal: str, status: Any) -> Any:
            return status

        class Manager:
            provider_class = classmethod(lambda cls, name: name)

        service: dict[str, Any] = {
            "reported_status": reported,
            "provider_manager": SimpleNamespace(_providers={}),
            "TerminalStatus": TerminalStatus,
            "RUNTIME_SKILL_PROMPT_PROVIDERS": set(),
        }
        broken: list[tuple[str, dict[str, Any]]] = [
            ("agent_plugins.mcp_mapping", {"PROVIDER_TRANSPORTS": {"claude_code": 1}, "PROVIDER_CWD_DELIVERY": Rejects()}),
            ("services.terminal_service", {**service, "RUNTIME_SKILL_PROMPT_PROVIDERS": frozenset()}),
            # Needed only when a status is asked for.
            ("services.terminal_service", {**service, "provider_manager": SimpleNamespace()}),
            ("services.terminal_service", {**service, "TerminalStatus": SimpleNamespace(COMPLETED=1)}),
            ("constants", {"PROVIDERS": Odd(["codex"])}),
            ("providers.manager", {"ProviderManager": Manager}),
        ]
        for name, values in broken:
            enforcement = ModuleType("cli_agent_orchestrator.utils.enforcement")
            vars(enforcement).update(PROVIDER_ENFORCEMENT={}, NATIVE="native")
            module = ModuleType(f"cli_agent_orchestrator.{name}")
            vars(module).update(values)
            before = {key: (value, repr(value), dict(getattr(value, "__dict__", {}))) for key, value in vars(module).items()}
            finder = hook._Finder()
            with mock.patch("sys.stderr", new_callable=io.StringIO) as said:
                finder.add(enforcement)
                finder.add(module)
            after = {key: (value, repr(value), dict(getattr(value, "__dict__", {}))) for key, value in vars(module).items()}
            self.assertEqual(after, before)
            self.assertEqual(vars(enforcement)["PROVIDER_ENFORCEMENT"], {})
            self.assertEqual(said.getvalue().count(f"cli_agent_orchestrator.{name} is not as expected"), 1)

    def test_what_cannot_be_checked_is_left_as_it_is(self) -> None:
        constants = ModuleType("cli_agent_orchestrator.constants")
        vars(constants).update(PROVIDERS=["codex"])
        with (
            mock.patch.object(hook, "unsupported", side_effect=UnicodeDecodeError("utf-8", b"x", 0, 1, "odd")),
            mock.patch("sys.stderr", new_callable=io.StringIO) as said,
        ):
            hook._Finder().add(constants)
        self.assertEqual(vars(constants)["PROVIDERS"], ["codex"])
        self.assertIn("the provider gemini_cli is not available", said.getvalue())

    def test_every_addition_can_be_taken_back(self) -> None:
        undone = (
            "import sys, importlib, alhena_cao.hook as hook\n"
            "for name in hook.ADDITIONS: importlib.import_module(name)\n"
            "finder = next(one for one in sys.meta_path if isinstance(one, hook._Finder))\n"
            "assert len(finder._undo) == len(hook.ADDITIONS)\n"
            "finder._refuse('a test')\n"
            "from cli_agent_orchestrator.models.provider import ProviderType\n"
            "print('gemini_cli' in [one.value for one in ProviderType], hasattr(ProviderType, 'GEMINI_CLI'))\n"
            "for name in hook.ADDITIONS:\n"
            "    holds = lambda value: isinstance(value, (dict, set, list)) and 'gemini_cli' in value\n"
            "    print([key for key, value in vars(sys.modules[name]).items() if holds(value)])\n"
        )
        done = subprocess.run([sys.executable, "-c", undone], env=switch_on(), capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout.splitlines(), ["False False"] + ["[]"] * len(hook.ADDITIONS), done.stderr)

    def test_a_session_to_resume_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "^The provider gemini_cli does not support resume_session_id"):
            provider_manager.create_provider("gemini_cli", "0123abcf", "cao-s", "w", resume_session_id="0123-4567")
        self.assertNotIn("0123abcf", provider_manager._providers)
        with self.assertRaisesRegex(ValueError, "only supported by the claude_code provider"):
            provider_manager.create_provider("mock_cli", "0123abcf", "cao-s", "w", resume_session_id="0123-4567")

    def test_the_others_are_as_they_were(self) -> None:
        self.assertEqual(ProviderManager.provider_class("codex").__name__, "CodexProvider")
        made = provider_manager.create_provider("mock_cli", "0123abce", "cao-s", "w")
        self.assertEqual(type(made).__name__, "MockCliProvider")
        provider_manager.cleanup_provider("0123abce")
        with self.assertRaisesRegex(ValueError, "Unknown provider type: none"):
            ProviderManager.provider_class("none")

    def test_registering_twice_is_registering_once(self) -> None:
        before = ProviderManager.create_provider
        alhena_cao.register()
        self.assertIs(ProviderManager.create_provider, before)
        self.assertEqual(PROVIDERS.count("gemini_cli"), 1)


@WITH_ALHENA
class Screens(unittest.TestCase):
    def test_states(self) -> None:  # D-03, D-04, D-05, D-09
        judge = provider().get_status
        self.assertEqual(judge(IDLE), TerminalStatus.IDLE)
        self.assertEqual(judge(ANSWERED), TerminalStatus.COMPLETED)
        self.assertEqual(judge(WORKING), TerminalStatus.PROCESSING)
        self.assertEqual(judge(""), TerminalStatus.UNKNOWN)

    def test_an_end_is_one_only_when_the_shell_is_back(self) -> None:
        ours = provider()
        ended = cao_provider.Pane("", "80", "Agent powering down. Goodbye!\n$ ", "node")
        with (
            mock.patch.object(ours, "_look", lambda: ended),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "exited"}),
            mock.patch.object(cao_provider, "SECOND_LOOK", 0.0),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.UNKNOWN)
            ended = ended._replace(command="sh")
            self.assertEqual(ours.get_status(""), TerminalStatus.ERROR)

    def test_a_turn_that_failed_is_shown_as_an_error_and_the_agent_takes_the_next(self) -> None:  # D-06
        ours = provider()
        provider_manager._providers["0123abcd"] = ours
        self.addCleanup(provider_manager._providers.pop, "0123abcd")
        seen = cao_provider.Pane("◇  Ready (w)", "80", "✕ [API Error: no]", "node")
        with (
            mock.patch.object(ours, "_look", lambda: seen),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "error", "error": "[API Error: no]"}),
            mock.patch.object(cao_provider, "SECOND_LOOK", 0.0),
        ):
            # CAO itself goes on; those who ask it see the error.
            self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
            shown = terminal_service.reported_status("0123abcd", TerminalStatus.COMPLETED)
            self.assertEqual(shown, TerminalStatus.ERROR)
            working = terminal_service.reported_status("0123abcd", TerminalStatus.PROCESSING)
            self.assertEqual(working, TerminalStatus.PROCESSING)
            with self.assertRaisesRegex(Exception, "API Error: no"):
                ours.extract_last_message_from_script("nothing")
            seen = seen._replace(command="sh")
            self.assertEqual(ours.get_status(""), TerminalStatus.ERROR)
            self.assertFalse(ours.turn_failed)

    def test_what_was_sent_is_work_until_its_turn_has_ended_whoever_asks(self) -> None:
        ours = provider()
        pane = cao_provider.Pane("◇  Ready (w)", "80", ANSWERED, "node")
        before: dict[str, Any] = {"status": "completed"}
        begun: dict[str, Any] = {"status": "processing", "turn": {"id": 1}}
        told = [before]
        with (
            mock.patch.object(ours, "_look", lambda: pane),
            mock.patch.object(ours, "_classify", lambda _, sent: told[-1] if sent else before),
            mock.patch.object(cao_provider, "SECOND_LOOK", 0.0),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
            ours.notify_status_buffer_reset(1)
            told.append({"status": "processing"})
            self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)
            ours.mark_input_received()
            self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)
            with mock.patch.object(cao_provider, "PICK_UP", 0.0):
                # A command of the CLI's own: there will be no turn.
                self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
                told.append(begun)
                self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)
            for ended in ["answered", "error", "empty"]:
                states = {"answered": "completed", "error": "error", "empty": "idle"}
                told.append({"status": states[ended], "turn": {"id": 1, "ended": ended}})
                self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED, ended)

    def test_an_answer_from_before_the_message_says_nothing(self) -> None:
        pane = cao_provider.Pane("◇  Ready (w)", "80", ANSWERED, "node")
        # CAO asks for the one before it notes that something is sent, and tells the other behind that.
        for sends in [lambda ours: ours.assume_processing_on_dispatch, lambda ours: ours.notify_status_buffer_reset(1)]:
            ours = provider()

            def slow_look(ours: Any = ours, sends: Any = sends) -> cao_provider.Pane:
                # While this one looks, somebody else sends.
                sends(ours)
                return pane

            with (
                mock.patch.object(ours, "_runs", lambda: True),
                mock.patch.object(ours, "_look", slow_look),
                mock.patch.object(ours, "_classify", lambda *_: {"status": "completed"}),
            ):
                self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)

    def test_cao_types_nothing_once_the_cli_has_ended(self) -> None:  # D-42
        ours = provider()
        provider_manager._providers["0123abcd"] = ours
        self.addCleanup(provider_manager._providers.pop, "0123abcd")
        backend = mock.Mock()
        runs = True

        def send() -> None:
            terminal_service.send_input("0123abcd", "touch executed")

        def refused() -> None:
            said = "has ended, so the message was not sent"
            with self.assertLogs(terminal_service.logger, "ERROR"), self.assertRaisesRegex(TerminalInputBlockedError, said):
                send()

        with (
            # CAO's own status is an old one.
            mock.patch.object(status_monitor, "get_status", lambda _: TerminalStatus.COMPLETED),
            mock.patch.object(terminal_service, "get_terminal_metadata", lambda _: {"tmux_session": "s", "tmux_window": "w"}),
            mock.patch.object(terminal_service, "inject_memory_context", lambda message, *_: message),
            mock.patch.object(terminal_service, "update_last_active"),
            mock.patch.object(terminal_service, "get_backend", lambda: backend),
            mock.patch.object(ours, "_look", lambda: cao_provider.Pane("", "80", ANSWERED, "node")),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "completed"}),
            mock.patch.object(ours, "_runs", lambda: runs),
        ):
            send()
            self.assertEqual(backend.send_keys.call_count, 1)
            runs = False
            refused()
            runs = True
            # While the CLI leaves, too. An exit that fails leaves an agent that takes messages.
            with (
                mock.patch.object(ours, "_ask_to_leave", refused),
                mock.patch.multiple(cao_provider, LEAVE=0.01, FORCED=0.0, _tmux=mock.Mock()),
                self.assertRaisesRegex(alhena_cao.ProviderError, "did not end"),
            ):
                ours.exit_cli()
            send()
            self.assertEqual(backend.send_keys.call_count, 2)
            runs = False
            self.assertEqual(ours.exit_cli(), "C-u")
            # Even where the pane still shows the agent.
            self.assertEqual(ours.get_status(""), TerminalStatus.ERROR)
            refused()
            self.assertEqual(backend.send_keys.call_count, 2)

    def test_an_agent_that_alhena_cannot_find_runs_while_its_pane_does_not_show_the_shell(self) -> None:  # D-42
        ours = provider()
        ours._traceable, ours._shell = False, "bash"
        command = "node"
        pressed: list[str] = []

        def press(key: str) -> None:
            nonlocal command
            pressed.append(key)
            if pressed.count("C-c") == 2:
                command = "bash"

        with (
            mock.patch.object(ours, "_look", lambda: cao_provider.Pane("◇  Ready (w)", "80", ANSWERED, command)),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "completed"}),
            mock.patch.object(ours, "_press", press),
        ):
            self.assertTrue(ours.assume_processing_on_dispatch)
            self.assertEqual(ours.exit_cli(), "C-u")
            self.assertEqual(pressed[:2], ["C-c", "C-c"])
            # An agent that has ended by itself gets no message either.
            ours._exits = False
            with self.assertRaisesRegex(TerminalInputBlockedError, "has ended"):
                ours.assume_processing_on_dispatch
        # An exit that has no effect is an error.
        with (
            mock.patch.object(ours, "_look", lambda: cao_provider.Pane("◇  Ready (w)", "80", ANSWERED, "node")),
            mock.patch.object(ours, "_ask_to_leave"),
            mock.patch.multiple(cao_provider, LEAVE=0.01, FORCED=0.0, _tmux=mock.Mock()),
            self.assertRaisesRegex(alhena_cao.ProviderError, "did not end"),
        ):
            ours.exit_cli()

    def test_without_a_session_a_message_counts_for_a_while(self) -> None:
        ours = provider()
        self.assertEqual(ours.get_status(ANSWERED), TerminalStatus.COMPLETED)
        ours.notify_status_buffer_reset(1)
        ours.mark_input_received()
        with mock.patch.object(cao_provider, "UNSEEN", 600.0):
            self.assertEqual(ours.get_status(ANSWERED), TerminalStatus.PROCESSING)
        with mock.patch.object(cao_provider, "UNSEEN", 0.0):
            self.assertEqual(ours.get_status(ANSWERED), TerminalStatus.COMPLETED)

    def test_the_answer(self) -> None:  # D-18 to D-24
        last = provider().extract_last_message_from_script
        self.assertEqual(last(ANSWERED), "Hello! An Error: is only a word here.\n\n  code")
        for screen, message in [
            (IDLE, "No Gemini CLI user query found - no > prefix detected"),
            (ANSWERED.split("✦")[0], "Empty Gemini CLI response - no content found after query"),
        ]:
            with self.assertRaises(OutputExtractionError) as raised:
                last(screen)
            self.assertEqual(str(raised.exception), message)


@WITH_ALHENA
class Launch(unittest.TestCase):
    def words(self, ours: cao_provider.GeminiCliProvider) -> list[str]:
        words = shlex.split(ours._command())
        return words[2:] if words[0] == "env" else words

    def test_what_the_server_finds_is_found_in_the_pane(self) -> None:
        found = {"gemini": "/a b/gemini", "node": "/n/node", "alhena": "/x/alhena"}
        with mock.patch("shutil.which", found.get):
            started = provider()._command()
        self.assertTrue(started.startswith("env PATH=\"$PATH\":'/a b:/n' /"), started)

    def test_without_a_profile(self) -> None:  # D-25, D-35, D-36
        expected = "terminal here --id 0123abcd --approval yolo --trust --sandbox=off"
        self.assertEqual(self.words(provider())[1:], expected.split())
        self.assertEqual(self.words(provider(model="a b"))[-2:], ["--model", "a b"])

    def test_a_profile_becomes_a_file_that_only_the_user_can_read(self) -> None:  # D-26, D-31, D-37
        store = CAO_HOME_DIR / "agent-store"
        store.mkdir(parents=True, exist_ok=True)
        (store / "quoter.md").write_text(
            "---\nname: quoter\ndescription: d\nmcpServers:\n  s:\n    type: stdio\n    command: c\n"
            "    env: {TOKEN: a=b==, EMPTY: ''}\n---\nIt's \"me\".\n"
        )
        ours = provider(agent_profile="quoter", skill_prompt="Skills.")
        words = self.words(ours)
        path = Path(words[words.index("--profile") + 1])
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        server = {"type": "stdio", "command": "c", "env": {"TOKEN": "a=b==", "EMPTY": ""}}
        front, prompt = path.read_text().removeprefix("---\n").split("\n---\n")
        self.assertEqual(json.loads(front), {"name": "quoter", "mcpServers": {"s": server}})
        self.assertEqual(prompt, "It's \"me\".\n\nSkills.\n")
        ours.cleanup()
        self.assertFalse(path.exists())

    def test_a_bad_profile_says_so(self) -> None:  # D-30
        with self.assertRaises(alhena_cao.ProviderError) as raised:
            provider(agent_profile="no_such_profile")._command()
        self.assertEqual(
            str(raised.exception),
            "Failed to load agent profile 'no_such_profile': Agent profile not found: no_such_profile",
        )

    def test_tools_that_are_not_allowed_are_denied(self) -> None:
        self.assertEqual(provider(allowed_tools=["*"])._denied_tools(), [])
        self.assertEqual(provider(allowed_tools=["@builtin"])._denied_tools(), [])
        self.assertEqual(
            provider(allowed_tools=["fs_read", "@cao-mcp-server"])._denied_tools(),
            ["google_web_search", "replace", "run_shell_command", "web_fetch", "write_file"],
        )


def switch_on() -> dict[str, str]:
    """Variables with which CAO's own programs know the provider, as where the wheel is installed: by its `.pth` file."""
    base = Path(os.environ["TMPDIR"]) / "user"
    variables = {**os.environ, "PYTHONUSERBASE": str(base)}
    where = subprocess.run(
        [sys.executable, "-m", "site", "--user-site"], env=variables, capture_output=True, text=True, check=False
    )
    site = Path(where.stdout.strip())
    site.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(alhena_cao.__file__).parent.parent / "alhena_cao.pth", site)
    return variables


def program(name: str) -> list[str]:
    """A program of CAO's own, as it is installed."""
    return [sys.executable, str(Path(cli_agent_orchestrator.__file__).parent.parent / "bin" / name)]


# When a status was asked for, what it was, and when it was told.
Sample = tuple[float, str, float]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """CAO's own `cao-server`, in a home and a tmux of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self.environment = {**switch_on(), "CAO_API_PORT": str(self.port)}
        self.log = open(Path(os.environ["TMPDIR"]) / "cao-server.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [*program("cao-server"), "--host", "127.0.0.1", "--port", str(self.port)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )

    def said(self) -> str:
        self.log.flush()
        self.log.seek(0)
        lines = [line for line in self.log if '"GET /' not in line]
        targets = ["tmux", "list-panes", "-a", "-F", "#{pane_id}"]
        for pane in subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split():
            capture = ["tmux", "capture-pane", "-p", "-t", pane]
            shown = subprocess.run(capture, capture_output=True, text=True, check=False).stdout
            lines += [f"---- {pane}\n"] + [f"{line}\n" for line in shown.splitlines() if line.strip()]
        return "".join(lines)[-20000:]

    def call(self, method: str, path: str, **parameters: str) -> Any:
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}{query}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=150) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}\n{self.said()}") from None

    def wait(self, what: str, condition: Callable[[], Any], seconds: float = 90) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                found = condition()
            except OSError:
                found = None
            if found:
                return found
            time.sleep(0.2)
        raise AssertionError(f"not {what}\n{self.said()}")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)
        self.log.close()


def sessions() -> list[str]:
    done = subprocess.run(["tmux", "list-sessions", "-F", "#S"], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split() if name.startswith("cao-")]


@WITH_CLI
class InCao(unittest.TestCase):
    """D-44, D-45: CAO's own server, its HTTP API and its MCP server, on the real CLI."""

    server: Server
    # What was shown instead of an answer is the first thing to know.
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.server.wait("up", lambda: cls.server.call("GET", "/health"))
        names = ["PYTHONPATH", "PYTHONUSERBASE", "PATH", "HOME", "TMUX_TMPDIR", "CAO_API_PORT", "TMPDIR"]
        command, *arguments = program("cao-mcp-server")
        environment = {name: cls.server.environment[name] for name in names}
        server = {"type": "stdio", "command": command, "args": arguments, "env": environment}
        for name, servers in [("worker", {}), ("helper", {"cao-mcp-server": server}), ("boss", {"cao-mcp-server": server})]:
            front = json.dumps({"name": name, "description": "d", "provider": "gemini_cli", "mcpServers": servers})
            profile = Path(os.environ["TMPDIR"]) / f"{name}.md"
            profile.write_text(f"---\n{front}\n---\nYou are the {name.upper()}.\n")
            cls.cao("install", str(profile), "--provider", "gemini_cli")

    @classmethod
    def cao(cls, *arguments: str) -> str:
        """CAO's own command line."""
        done = subprocess.run(
            [*program("cao"), *arguments],
            env=cls.server.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
            stdin=subprocess.DEVNULL,
            cwd=os.environ["ALHENA_TEST_WORK"],
        )
        if done.returncode != 0:
            raise AssertionError(f"cao {arguments}: {done.stdout}{done.stderr}\n{cls.server.said()}")
        return done.stdout

    def status(self, terminal: str) -> str:
        return str(self.server.call("GET", f"/terminals/{terminal}")["status"])

    def ask(self, terminal: str, message: str, seconds: float = 90) -> str:
        self.server.call("POST", f"/terminals/{terminal}/input", message=message)
        self.server.wait("completed", lambda: self.status(terminal) == "completed", seconds)
        return str(self.server.call("GET", f"/terminals/{terminal}/output", mode="last")["output"])

    def create(self, profile: str, **others: str) -> Any:
        return self.server.call(
            "POST",
            "/sessions",
            agent_profile=profile,
            provider="gemini_cli",
            session_name=f"cao-{profile}",
            working_directory=os.environ["ALHENA_TEST_WORK"],
            allowed_tools="*",
            model="gemini-2.5-flash",
            **others,
        )

    def test_a_session_from_its_beginning_to_its_end(self) -> None:
        with self.assertRaisesRegex(AssertionError, "The provider gemini_cli does not support resume_session_id"):
            self.create("worker", resume_session_id="0123-4567-89ab")
        self.assertEqual(sessions(), [])
        terminal = self.create("worker")
        self.assertEqual((terminal["provider"], terminal["session_name"]), ("gemini_cli", "cao-worker"))
        self.server.wait("ready", lambda: self.status(terminal["id"]) in {"idle", "completed"})
        self.assertEqual(self.ask(terminal["id"], "What is 6 times 7? Really?"), "It is 42.")
        self.assertEqual(self.ask(terminal["id"], "Second question"), "Second answer:\n\n- one\n- two")
        self.server.call("POST", f"/terminals/{terminal['id']}/exit")
        self.assertTrue(self.shell_is_back())
        self.close("cao-worker")

    def shell_is_back(self) -> bool:
        shows = ["tmux", "list-panes", "-t", "=cao-worker:", "-F", "#{pane_current_command}"]
        shown = subprocess.run(shows, capture_output=True, text=True, check=False).stdout
        return shown.strip() in {"sh", "bash", "dash", "zsh"}

    def test_exit_ends_an_agent_that_works_or_has_a_draft(self) -> None:  # D-42
        for state in ["is idle", "works", "has a draft", "runs a command", "has ended by itself"]:
            terminal = self.create("worker")["id"]
            self.server.wait("ready", lambda: self.status(terminal) in {"idle", "completed"})
            if state == "has a draft":
                subprocess.run(["tmux", "send-keys", "-t", "=cao-worker:", "-l", "not sent"], check=True)
            elif state == "has ended by itself":
                self.server.wait("ended", lambda: self.interrupted(terminal), 30)
                self.types_nothing(terminal, state)
            elif state != "is idle":
                message = "Take your time" if state == "works" else "Run for long"
                self.server.call("POST", f"/terminals/{terminal}/input", message=message)
                self.server.wait("at work", lambda: self.status(terminal) == "processing")
            self.server.call("POST", f"/terminals/{terminal}/exit")
            self.types_nothing(terminal, state)
            self.assertTrue(self.shell_is_back(), f"{state}\n{self.server.said()}")
            self.assertFalse(self.runs(terminal), state)
            self.server.wait("an error", lambda: self.status(terminal) == "error", 10)
            # A second exit has nothing to do.
            self.server.call("POST", f"/terminals/{terminal}/exit")
            self.close("cao-worker")

    def interrupted(self, terminal: str) -> bool:
        """Presses Ctrl+C twice and returns whether the CLI has ended. A busy machine can be too slow for one pair; the shell ignores it."""
        for key in ["C-c", "C-c"]:
            subprocess.run(["tmux", "send-keys", "-t", "=cao-worker:", key], check=True)
            time.sleep(0.2)
        return not self.runs(terminal)

    def runs(self, terminal: str) -> bool:
        ask = [alhena.find_binary(), "terminal", "classify", "--here", terminal]
        return subprocess.run(ask, input="", capture_output=True, text=True).returncode != 2

    def types_nothing(self, terminal: str, state: str) -> None:
        """A message to an agent that has ended is refused. The shell of its pane would run it as a command."""
        executed = Path(os.environ["TMPDIR"]) / "executed"
        with self.assertRaisesRegex(AssertionError, "/input: 409 ", msg=state):
            self.server.call("POST", f"/terminals/{terminal}/input", message=f"touch {executed}")
        time.sleep(2.0)
        self.assertFalse(executed.exists(), state)

    def poll(self, terminal: str, over: threading.Event, samples: list[Sample]) -> None:
        while not over.is_set():
            asked = time.monotonic()
            samples.append((asked, self.status(terminal), time.monotonic()))
            time.sleep(0.1)

    def test_two_pollers_see_work_until_it_is_answered_and_an_error_is_not_the_end(self) -> None:
        terminal = self.create("worker")["id"]
        self.server.wait("ready", lambda: self.status(terminal) in {"idle", "completed"})
        over = threading.Event()
        samples: list[Sample] = []
        pollers = [threading.Thread(target=self.poll, args=(terminal, over, samples)) for _ in range(2)]
        for poller in pollers:
            poller.start()
        turns: list[tuple[str, str | None]] = [("Answer at once", "At once."), ("Fail now", None), ("Take your time", "Late."), ("Draw it", MARKDOWN)]
        wrong: list[Sample] = []
        try:
            for message, expected in turns:
                self.server.call("POST", f"/terminals/{terminal}/input", message=message)
                sent = time.monotonic()
                status = "error" if expected is None else "completed"
                self.server.wait(status, lambda: self.status(terminal) == status)
                ended = time.monotonic()
                if expected is None:
                    with self.assertRaisesRegex(AssertionError, "no such thing"):
                        self.server.call("GET", f"/terminals/{terminal}/output", mode="last")
                else:
                    said = self.server.call("GET", f"/terminals/{terminal}/output", mode="last")["output"]
                    self.assertEqual(said, expected)
                if message == "Take your time":
                    # The answer takes 12 s since the first Enter; a sample counts when it was asked for and told within them.
                    inside = [one for one in samples if sent < one[0] and one[2] < min(ended, sent + 5.0)]
                    self.assertTrue(inside, "nobody looked while it worked")
                    wrong += [one for one in inside if one[1] != "processing"]
        finally:
            over.set()
            for poller in pollers:
                poller.join()
        self.assertEqual(wrong, [])
        self.server.call("DELETE", "/sessions/cao-worker")
        self.server.wait("gone", lambda: "cao-worker" not in sessions(), 30)

    def test_three_handoffs_with_answers_of_0_3_and_15_seconds_while_two_look_on(self) -> None:
        terminal = self.create("boss")["id"]
        over = threading.Event()
        samples: list[Sample] = []
        pollers = [threading.Thread(target=self.poll, args=(terminal, over, samples)) for _ in range(2)]
        for poller in pollers:
            poller.start()
        try:
            for seconds in [0, 3, 15]:
                answer = self.ask(terminal, f"Have {seconds} seconds spent", 150)
                self.assertEqual(answer, f"The worker says: {seconds} seconds were spent.")
        finally:
            over.set()
            for poller in pollers:
                poller.join()
        self.server.call("DELETE", "/sessions/cao-boss")
        self.server.wait("gone", lambda: sessions() == [] or "cao-boss" not in sessions(), 30)

    def windows(self, session: str) -> int:
        shows = ["tmux", "list-windows", "-t", f"={session}", "-F", "#W"]
        return len(subprocess.run(shows, capture_output=True, text=True, check=False).stdout.split())

    def close(self, session: str) -> None:
        self.server.call("DELETE", f"/sessions/{session}")
        self.server.wait("gone", lambda: session not in sessions(), 30)

    def test_a_handoff_to_a_second_agent(self) -> None:
        terminal = self.create("boss")
        answer = self.ask(terminal["id"], "Have it counted")
        self.assertEqual(answer, "The worker says: 3 files.")
        self.close("cao-boss")

    def test_cao_launch_starts_it_and_work_is_assigned_and_reported(self) -> None:
        # Installed and launched by CAO's own commands, with nothing said about the provider but its name.
        self.cao("launch", "--agents", "boss", "--provider", "gemini_cli", "--session-name", "cao-boss", "--headless", "--yolo")
        terminals = self.server.call("GET", "/sessions/cao-boss/terminals")
        self.assertEqual([terminal["provider"] for terminal in terminals], ["gemini_cli"])
        boss = terminals[0]["id"]
        self.server.wait("ready", lambda: self.status(boss) in {"idle", "completed"})
        self.server.call("POST", f"/terminals/{boss}/input", message="Have it assigned")
        # The worker is in the supervisor's session, and sends what it found to the supervisor, who answers.
        self.server.wait("two windows", lambda: self.windows("cao-boss") == 2)

        def last() -> str:
            try:
                return str(self.server.call("GET", f"/terminals/{boss}/output", mode="last")["output"])
            except AssertionError:
                return ""

        self.server.wait("reported", lambda: last() == "Got the report: 7.", 150)
        self.close("cao-boss")


if __name__ == "__main__":
    unittest.main()
