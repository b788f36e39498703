"""Tests of the provider inside CAO itself. They need the package cli-agent-orchestrator on PYTHONPATH; those on the real
CLI run when `ALHENA_TEST_SCENARIOS` names the addresses of a scripted API: `cargo xtask test real_hosts` sets all up.
"""

import json
import os
import shlex
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
from pathlib import Path
from unittest import mock

import alhena_cao

alhena_cao.register()

from cli_agent_orchestrator.constants import CAO_HOME_DIR, PROVIDERS  # noqa: E402
from cli_agent_orchestrator.models.provider import ProviderType  # noqa: E402
from cli_agent_orchestrator.models.terminal import Terminal, TerminalStatus  # noqa: E402
from cli_agent_orchestrator.providers.base import OutputExtractionError  # noqa: E402
from cli_agent_orchestrator.providers.manager import ProviderManager, provider_manager  # noqa: E402

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


def provider(**options):
    return alhena_cao.GeminiCliProvider("0123abcd", "cao-none", "window", **options)


class Registration(unittest.TestCase):
    def test_cao_knows_the_provider_everywhere(self):  # D-01, D-44
        self.assertEqual(ProviderType("gemini_cli"), ProviderType.GEMINI_CLI)
        self.assertIn("gemini_cli", PROVIDERS)
        self.assertIn(ProviderType.GEMINI_CLI, list(ProviderType))
        terminal = Terminal(
            id="0123abcd", name="w", provider="gemini_cli", session_name="cao-s", agent_profile="developer"
        )
        self.assertEqual(json.loads(terminal.model_dump_json())["provider"], "gemini_cli")
        self.assertIs(ProviderManager.provider_class("gemini_cli"), alhena_cao.GeminiCliProvider)
        made = provider_manager.create_provider("gemini_cli", "0123abcd", "cao-s", "w", "developer", model="m")
        self.assertIs(provider_manager.get_provider("0123abcd"), made)
        self.assertTrue(provider_manager.cleanup_provider("0123abcd"))

    def test_the_others_are_as_they_were(self):
        self.assertEqual(ProviderManager.provider_class("codex").__name__, "CodexProvider")
        made = provider_manager.create_provider("mock_cli", "0123abce", "cao-s", "w")
        self.assertEqual(type(made).__name__, "MockCliProvider")
        provider_manager.cleanup_provider("0123abce")
        with self.assertRaisesRegex(ValueError, "Unknown provider type: none"):
            ProviderManager.provider_class("none")

    def test_registering_twice_is_registering_once(self):
        before = ProviderManager.create_provider
        alhena_cao.register()
        self.assertIs(ProviderManager.create_provider, before)
        self.assertEqual(PROVIDERS.count("gemini_cli"), 1)


@WITH_ALHENA
class Screens(unittest.TestCase):
    def test_states(self):  # D-03, D-04, D-05, D-09
        judge = provider().get_status
        self.assertEqual(judge(IDLE), TerminalStatus.IDLE)
        self.assertEqual(judge(ANSWERED), TerminalStatus.COMPLETED)
        self.assertEqual(judge(WORKING), TerminalStatus.PROCESSING)
        self.assertEqual(judge(""), TerminalStatus.UNKNOWN)

    def test_an_end_is_one_only_when_the_shell_is_back(self):
        ours = provider()
        ended = alhena_cao.Pane("", "80", "Agent powering down. Goodbye!\n$ ", "node")
        with (
            mock.patch.object(ours, "_look", lambda: ended),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "exited"}),
            mock.patch.object(alhena_cao, "SECOND_LOOK", 0.0),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.UNKNOWN)
            ended = ended._replace(command="sh")
            self.assertEqual(ours.get_status(""), TerminalStatus.ERROR)

    def test_a_turn_that_failed_is_over_and_the_agent_is_ready(self):  # D-06
        ours = provider()
        seen = alhena_cao.Pane("◇  Ready (w)", "80", "✕ [API Error: no]", "node")
        with (
            mock.patch.object(ours, "_look", lambda: seen),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "error", "error": "[API Error: no]"}),
            mock.patch.object(alhena_cao, "SECOND_LOOK", 0.0),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
            with self.assertRaisesRegex(Exception, "API Error: no"):
                ours.extract_last_message_from_script("nothing")
            seen = seen._replace(command="sh")
            self.assertEqual(ours.get_status(""), TerminalStatus.ERROR)

    def test_what_was_sent_is_work_until_its_turn_has_ended_whoever_asks(self):
        ours = provider()
        pane = alhena_cao.Pane("◇  Ready (w)", "80", ANSWERED, "node")
        before, begun = {"status": "completed"}, {"status": "processing", "turn": {"id": 1}}
        told = [before]
        with (
            mock.patch.object(ours, "_look", lambda: pane),
            mock.patch.object(ours, "_classify", lambda _, sent: told[-1] if sent else before),
            mock.patch.object(alhena_cao, "SECOND_LOOK", 0.0),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
            ours.notify_status_buffer_reset(1)
            told.append({"status": "processing"})
            self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)
            ours.mark_input_received()
            self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)
            with mock.patch.object(alhena_cao, "PICK_UP", 0.0):
                # A command of the CLI's own: there will be no turn.
                self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED)
                told.append(begun)
                self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)
            for ended in ["answered", "error", "empty"]:
                states = {"answered": "completed", "error": "error", "empty": "idle"}
                told.append({"status": states[ended], "turn": {"id": 1, "ended": ended}})
                self.assertEqual(ours.get_status(""), TerminalStatus.COMPLETED, ended)

    def test_an_answer_from_before_the_message_says_nothing(self):
        ours = provider()
        pane = alhena_cao.Pane("◇  Ready (w)", "80", ANSWERED, "node")

        def slow_look():
            # While this one looks, somebody else sends.
            ours.notify_status_buffer_reset(1)
            return pane

        with (
            mock.patch.object(ours, "_look", slow_look),
            mock.patch.object(ours, "_classify", lambda *_: {"status": "completed"}),
        ):
            self.assertEqual(ours.get_status(""), TerminalStatus.PROCESSING)

    def test_without_a_session_a_message_counts_for_a_while(self):
        ours = provider()
        self.assertEqual(ours.get_status(ANSWERED), TerminalStatus.COMPLETED)
        ours.notify_status_buffer_reset(1)
        ours.mark_input_received()
        self.assertEqual(ours.get_status(ANSWERED), TerminalStatus.PROCESSING)
        with mock.patch.object(alhena_cao, "UNSEEN", 0.0):
            self.assertEqual(ours.get_status(ANSWERED), TerminalStatus.COMPLETED)

    def test_the_answer(self):  # D-18 to D-24
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
    def words(self, ours):
        words = shlex.split(ours._command())
        return words[2:] if words[0] == "env" else words

    def test_what_the_server_finds_is_found_in_the_pane(self):
        found = {"gemini": "/a b/gemini", "node": "/n/node", "alhena": "/x/alhena"}
        with mock.patch("shutil.which", found.get):
            started = provider()._command()
        self.assertTrue(started.startswith("env PATH=\"$PATH\":'/a b:/n' /"), started)

    def test_without_a_profile(self):  # D-25, D-35, D-36
        expected = "terminal here --id 0123abcd --approval yolo --trust --sandbox=off"
        self.assertEqual(self.words(provider())[1:], expected.split())
        self.assertEqual(self.words(provider(model="a b"))[-2:], ["--model", "a b"])

    def test_a_profile_becomes_a_file_that_only_the_user_can_read(self):  # D-26, D-31, D-37
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

    def test_a_bad_profile_says_so(self):  # D-30
        with self.assertRaises(alhena_cao.ProviderError) as raised:
            provider(agent_profile="no_such_profile")._command()
        self.assertEqual(
            str(raised.exception),
            "Failed to load agent profile 'no_such_profile': Agent profile not found: no_such_profile",
        )

    def test_tools_that_are_not_allowed_are_denied(self):
        self.assertEqual(provider(allowed_tools=["*"])._denied_tools(), [])
        self.assertEqual(provider(allowed_tools=["@builtin"])._denied_tools(), [])
        self.assertEqual(
            provider(allowed_tools=["fs_read", "@cao-mcp-server"])._denied_tools(),
            ["google_web_search", "replace", "run_shell_command", "web_fetch", "write_file"],
        )


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A `cao-server` with the provider, in a home and a tmux of its own."""

    def __init__(self):
        self.port = free_port()
        self.environment = {**os.environ, "CAO_API_PORT": str(self.port)}
        self.log = open(Path(os.environ["TMPDIR"]) / "cao-server.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-B", "-m", "alhena_cao", "server", "--host", "127.0.0.1", "--port", str(self.port)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )

    def said(self):
        self.log.flush()
        self.log.seek(0)
        lines = [line for line in self.log if '"GET /' not in line]
        targets = ["tmux", "list-panes", "-a", "-F", "#{pane_id}"]
        for pane in subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split():
            capture = ["tmux", "capture-pane", "-p", "-t", pane]
            shown = subprocess.run(capture, capture_output=True, text=True, check=False).stdout
            lines += [f"---- {pane}\n"] + [f"{line}\n" for line in shown.splitlines() if line.strip()]
        return "".join(lines)[-20000:]

    def call(self, method, path, **parameters):
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}{query}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=150) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}\n{self.said()}") from None

    def wait(self, what, condition, seconds=90):
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

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)
        self.log.close()


def sessions():
    done = subprocess.run(["tmux", "list-sessions", "-F", "#S"], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split() if name.startswith("cao-")]


@WITH_CLI
class InCao(unittest.TestCase):
    """D-44, D-45: CAO's own server, its HTTP API and its MCP server, on the real CLI."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.server.wait("up", lambda: cls.server.call("GET", "/health"))
        store = CAO_HOME_DIR / "agent-store"
        store.mkdir(parents=True, exist_ok=True)
        (store / "worker.md").write_text("---\nname: worker\ndescription: works\n---\nYou are the WORKER.\n")
        names = ["PYTHONPATH", "PATH", "HOME", "TMUX_TMPDIR", "CAO_API_PORT", "TMPDIR"]
        server = {
            "type": "stdio",
            "command": sys.executable,
            "args": ["-B", "-m", "alhena_cao", "mcp-server"],
            "env": {name: cls.server.environment[name] for name in names},
        }
        front = json.dumps({"name": "boss", "description": "leads", "mcpServers": {"cao-mcp-server": server}})
        (store / "boss.md").write_text(f"---\n{front}\n---\nYou are the BOSS.\n")

    def status(self, terminal):
        return self.server.call("GET", f"/terminals/{terminal}")["status"]

    def ask(self, terminal, message, seconds=90):
        self.server.call("POST", f"/terminals/{terminal}/input", message=message)
        self.server.wait("completed", lambda: self.status(terminal) == "completed", seconds)
        return self.server.call("GET", f"/terminals/{terminal}/output", mode="last")["output"]

    def create(self, profile):
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

    def test_a_session_from_its_beginning_to_its_end(self):
        terminal = self.create("worker")
        self.assertEqual((terminal["provider"], terminal["session_name"]), ("gemini_cli", "cao-worker"))
        self.server.wait("ready", lambda: self.status(terminal["id"]) in {"idle", "completed"})
        self.assertEqual(self.ask(terminal["id"], "What is 6 times 7? Really?"), "It is 42.")
        self.assertEqual(self.ask(terminal["id"], "Second question"), "Second answer:\n\n- one\n- two")
        self.server.call("POST", f"/terminals/{terminal['id']}/exit")
        shows = ["tmux", "list-panes", "-t", "=cao-worker:", "-F", "#{pane_current_command}"]
        show = lambda: subprocess.run(shows, capture_output=True, text=True, check=False).stdout.strip()  # noqa: E731
        self.server.wait("a shell again", lambda: show() in {"sh", "bash", "dash", "zsh"}, 60)
        self.server.call("DELETE", "/sessions/cao-worker")
        self.server.wait("gone", lambda: "cao-worker" not in sessions(), 30)

    def poll(self, terminal, over, samples):
        while not over.is_set():
            asked = time.monotonic()
            samples.append((asked, self.status(terminal), time.monotonic()))
            time.sleep(0.1)

    def test_two_pollers_see_work_until_it_is_answered_and_an_error_is_not_the_end(self):
        terminal = self.create("worker")["id"]
        self.server.wait("ready", lambda: self.status(terminal) in {"idle", "completed"})
        over, samples = threading.Event(), []
        pollers = [threading.Thread(target=self.poll, args=(terminal, over, samples)) for _ in range(2)]
        for poller in pollers:
            poller.start()
        turns = [("Answer at once", "At once."), ("Fail now", None), ("Take your time", "Late."), ("Draw it", MARKDOWN)]
        wrong = []
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
                    # The answer takes 3 s; a sample counts when it was asked for and told within them.
                    inside = [one for one in samples if sent < one[0] and one[2] < min(ended, sent + 2.0)]
                    self.assertGreater(len(inside), 4)
                    wrong += [one for one in inside if one[1] != "processing"]
        finally:
            over.set()
            for poller in pollers:
                poller.join()
        self.assertEqual(wrong, [])
        self.server.call("DELETE", "/sessions/cao-worker")
        self.server.wait("gone", lambda: "cao-worker" not in sessions(), 30)

    def test_three_handoffs_with_answers_of_0_3_and_15_seconds_while_two_look_on(self):
        terminal = self.create("boss")["id"]
        over, samples = threading.Event(), []
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

    def test_a_handoff_to_a_second_agent(self):
        terminal = self.create("boss")
        answer = self.ask(terminal["id"], "Have it counted")
        self.assertEqual(answer, "The worker says: 3 files.")
        self.server.call("DELETE", "/sessions/cao-boss")
        self.server.wait("gone", lambda: sessions() == [] or "cao-boss" not in sessions(), 30)


if __name__ == "__main__":
    unittest.main()
