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
from types import ModuleType
from typing import Any
from unittest import mock

import alhena
import alhena_cao
import alhena_cao.provider as cao_provider
from alhena_cao import hook
import cli_agent_orchestrator
from cli_agent_orchestrator.constants import CAO_HOME_DIR, PROVIDERS
from cli_agent_orchestrator.models.provider import ProviderType
from cli_agent_orchestrator.models.terminal import Terminal, TerminalStatus
from cli_agent_orchestrator.providers.base import OutputExtractionError
from cli_agent_orchestrator.providers.manager import ProviderManager, provider_manager

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
        for variables, known in [({}, "True"), ({"ALHENA_CAO": "off"}, "False"), ({"PYTHONUSERBASE": "/nowhere"}, "False")]:
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

    def test_another_release_of_cao_is_told_and_goes_on(self) -> None:
        stranger = ModuleType("cli_agent_orchestrator.constants")
        with mock.patch("sys.stderr", new_callable=io.StringIO) as said:
            hook._add(stranger)
        self.assertIn("alhena-cao does not fit this release of CAO", said.getvalue())

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

    def test_a_turn_that_failed_is_over_and_the_agent_is_ready(self) -> None:  # D-06
        ours = provider()
        seen = cao_provider.Pane("◇  Ready (w)", "80", "✕ [API Error: no]", "node")
        with (
            mock.patch.object(ours, "_look", lambda: seen),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "error", "error": "[API Error: no]"}),
            mock.patch.object(cao_provider, "SECOND_LOOK", 0.0),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
            with self.assertRaisesRegex(Exception, "API Error: no"):
                ours.extract_last_message_from_script("nothing")
            seen = seen._replace(command="sh")
            self.assertEqual(ours.get_status(""), TerminalStatus.ERROR)

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
                mock.patch.object(ours, "_look", slow_look),
                mock.patch.object(ours, "_classify", lambda *_: {"status": "completed"}),
            ):
                self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)

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

    def create(self, profile: str) -> Any:
        return self.server.call(
            "POST",
            "/sessions",
            agent_profile=profile,
            provider="gemini_cli",
            session_name=f"cao-{profile}",
            working_directory=os.environ["ALHENA_TEST_WORK"],
            allowed_tools="*",
            model="gemini-2.5-flash",
        )

    def test_a_session_from_its_beginning_to_its_end(self) -> None:
        terminal = self.create("worker")
        self.assertEqual((terminal["provider"], terminal["session_name"]), ("gemini_cli", "cao-worker"))
        self.server.wait("ready", lambda: self.status(terminal["id"]) in {"idle", "completed"})
        self.assertEqual(self.ask(terminal["id"], "What is 6 times 7? Really?"), "It is 42.")
        self.assertEqual(self.ask(terminal["id"], "Second question"), "Second answer:\n\n- one\n- two")
        self.server.call("POST", f"/terminals/{terminal['id']}/exit")
        shows = ["tmux", "list-panes", "-t", "=cao-worker:", "-F", "#{pane_current_command}"]

        def shell_is_back() -> bool:
            shown = subprocess.run(shows, capture_output=True, text=True, check=False).stdout
            return shown.strip() in {"sh", "bash", "dash", "zsh"}

        self.server.wait("a shell again", shell_is_back, 60)
        self.server.call("DELETE", "/sessions/cao-worker")
        self.server.wait("gone", lambda: "cao-worker" not in sessions(), 30)

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
                self.server.wait("completed", lambda: self.status(terminal) == "completed")
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
