"""The provider. CAO owns the tmux pane. In it runs `alhena terminal here`, which gives the CLI a home of its own, with the
profile and its MCP servers, and leaves no process behind. What the pane shows, and what the session says, is judged by
`alhena terminal classify`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from alhena import AlhenaError, find_binary

from .hook import NAME, register

# CAO's modules copy the list of providers when they are loaded: it must be complete before.
register()

from cli_agent_orchestrator.agent_plugins.mcp_delivery import with_plugin_mcp  # noqa: E402
from cli_agent_orchestrator.backends.registry import get_backend  # noqa: E402
from cli_agent_orchestrator.constants import CAO_HOME_DIR  # noqa: E402
from cli_agent_orchestrator.models.terminal import TerminalInputBlockedError, TerminalStatus  # noqa: E402
from cli_agent_orchestrator.providers.base import (  # noqa: E402
    BaseProvider,
    OutputExtractionError,
    OutputExtractionRejected,
)
from cli_agent_orchestrator.utils.agent_profiles import load_agent_profile  # noqa: E402
from cli_agent_orchestrator.utils.terminal import wait_for_shell  # noqa: E402

logger = logging.getLogger(__name__)

# How much of the history is looked at for a status: the last query must be in it.
HISTORY_LINES = 400
SECOND_LOOK = 0.2
# How long the CLI may take to begin with what was sent to it; while its MCP servers start, that does not count.
PICK_UP = 30.0
# The same where its session cannot be found.
UNSEEN = 5.0
# How long a shell may take to start something.
START = 10.0
# How long a pane may take to have a shell that answers.
SHELL = 60.0
# How long the CLI may take to leave when it is asked to, and how long its end may take when it is forced.
LEAVE = 12.0
FORCED = 15.0
BUSY = {"starting", "processing", "waiting"}
# What `alhena` ends with when it knows nothing of an agent.
NOT_FOUND = 2
READY = {TerminalStatus.IDLE, TerminalStatus.COMPLETED}
STATUS = {
    "starting": TerminalStatus.PROCESSING,
    "idle": TerminalStatus.IDLE,
    "processing": TerminalStatus.PROCESSING,
    "completed": TerminalStatus.COMPLETED,
    "waiting": TerminalStatus.WAITING_USER_ANSWER,
    "error": TerminalStatus.ERROR,
    "exited": TerminalStatus.ERROR,
    "unknown": TerminalStatus.UNKNOWN,
}
# CAO's names for tools, and Gemini CLI's.
TOOLS = {
    "execute_bash": {"run_shell_command"},
    "fs_read": {"read_file", "read_many_files", "list_directory", "glob", "grep_search"},
    "fs_write": {"write_file", "replace"},
    "fs_list": {"list_directory", "glob", "grep_search"},
    "web_fetch": {"web_fetch", "google_web_search"},
}
TOOLS["fs_*"] = TOOLS["fs_read"] | TOOLS["fs_write"]


class ProviderError(RuntimeError):
    """The provider could not do what it was asked."""


class Pane(NamedTuple):
    """What a pane shows."""

    title: str
    columns: str
    text: str
    command: str = ""


class Sent(NamedTuple):
    """Something that was sent to the agent."""

    # When CAO had typed it, by the monotonic clock.
    at: float
    # When it began to, in milliseconds since 1970: the session has it later.
    since: int


class GeminiCliProvider(BaseProvider):
    """An interactive Gemini CLI in a pane of CAO's."""

    def __init__(
        self,
        terminal_id: str,
        session_name: str,
        window_name: str,
        agent_profile: str | None = None,
        allowed_tools: list[str] | None = None,
        skill_prompt: str | None = None,
        model: str | None = None,
    ) -> None:
        super().__init__(terminal_id, session_name, window_name, allowed_tools, skill_prompt)
        self._agent_profile = agent_profile
        self._model = model
        self._initialized = False
        self._shell = "sh"
        # Whether `alhena` finds the agent by its id. It does not where the pane has another state directory than the server.
        self._traceable = True
        # Whether the CLI was told to exit.
        self._exits = False
        # When something was sent to it that has not been answered, and when that was seen to be so.
        self._sent: Sent | None = None
        # Whether the last turn ended with an error while the CLI runs on; CAO then shows the status error.
        self.turn_failed = False

    # -- CAO's surface

    @classmethod
    def honors_model(cls, agent_profile: Any, profile: Any, requested_model: str | None) -> bool:
        return True

    @property
    def paste_enter_count(self) -> int:
        """The CLI does not take an Enter that comes too soon after a paste; a second one on an empty prompt does nothing."""
        return 2

    @property
    def paste_submit_delay(self) -> float:
        return 1.0

    @property
    def blocks_orchestrated_input_while_waiting_user_answer(self) -> bool:
        return True

    @property
    def assume_processing_on_dispatch(self) -> bool:
        """CAO asks just before it notes that something is sent, and tells us a little later: in between, the status of somebody
        who looked before would count for the new turn, to its end.

        It is also the last moment to refuse the message. CAO's own check uses a status that can be some seconds old, and the
        shell that is left after the CLI has ended would run the message as a command.
        """
        if self._exits or not self._runs():
            raise TerminalInputBlockedError(
                f"Gemini CLI in terminal {self.terminal_id} has ended, so the message was not sent: start a new session"
            )
        self._sent = _sent_now()
        return True

    @property
    def allow_raw_transcript_fallback(self) -> bool:
        """The screen is no answer."""
        return False

    @property
    def extraction_retries(self) -> int:
        return 2

    async def initialize(self) -> bool:
        """Shell, warm-up, launch, ready (D-38 to D-41)."""
        if not await wait_for_shell(self.terminal_id, timeout=SHELL):
            raise TimeoutError(f"Shell initialization timed out after {SHELL:.0f} seconds")
        self._shell = await asyncio.to_thread(self._warm_up, SHELL)
        command = await asyncio.to_thread(self._command)
        # Imported late: the monitor imports the list of providers.
        from cli_agent_orchestrator.services.status_monitor import status_monitor

        status_monitor.notify_input_sent(self.terminal_id)
        await asyncio.to_thread(self._type, command)
        timeout = float(self.get_init_timeout(self._profile()))
        await asyncio.to_thread(self._wait_until_ready, timeout)
        self._traceable = await asyncio.to_thread(self._is_found)
        self._exits = False
        self._initialized = True
        return True

    def get_status(self, buffer: str) -> TerminalStatus:
        """What the agent does, by what its pane and its session say; the buffer is asked only when there is no pane."""
        if self._exits:
            return TerminalStatus.ERROR
        looked = time.monotonic()
        sent = self._sent
        status = self._status_now(buffer, sent)
        if status is TerminalStatus.ERROR or (status in READY and sent is not None):
            # A frame that is half drawn, or a start, can look like an end: it has to stay so.
            time.sleep(SECOND_LOOK)
            again = self._status_now(buffer, sent)
            status = again if again is status else TerminalStatus.PROCESSING
        # Several may ask at once: what one saw before the message was sent says nothing about it.
        if self._sent is not sent or (sent is not None and looked <= sent.at):
            return TerminalStatus.PROCESSING
        return status

    def extract_last_message_from_script(self, script_output: str) -> str:
        """The last answer, as the model wrote it; without a session, as the CLI draws it (D-18 to D-24)."""
        pane = self._look()
        arguments = ["--last"] + (["--columns", pane.columns] if pane else [])
        command = ["terminal", "classify", *arguments]
        done = _alhena([*command, *self._here(self._sent)], script_output)
        if done.returncode == NOT_FOUND:
            done = _alhena(command, script_output)
        if done.returncode != 0:
            reading = self._classify(pane._replace(text=script_output), self._sent) if pane else {}
            failed = reading.get("error") or reading.get("warning")
            message = str(failed or done.stderr.strip().removeprefix("error:").strip())
            # Of a turn that has ended without an answer, CAO must not take the screen for one.
            over = (reading.get("turn") or {}).get("ended")
            kind = OutputExtractionRejected if over else OutputExtractionError
            raise kind(message.splitlines()[0] if message else "no answer was found")
        return done.stdout.rstrip("\n")

    def get_error_message(self, buffer: str) -> str | None:
        pane = self._look() or Pane("", "", buffer)
        error = self._classify(pane).get("error")
        return str(error) if error else None

    def exit_cli(self) -> str:
        """Ends the CLI, and returns a key that does nothing at the prompt of the shell that is left (D-42).

        CAO types the returned text once and does not look at the result. A command such as `/quit` would stay in the input box
        while the agent works, and Ctrl+D is needed twice and would end the shell, too, when the CLI has just left.
        """
        # From now on, so that no message is typed while the CLI leaves.
        self._exits = True
        try:
            self._end()
        except Exception:
            self._exits = False
            raise
        return "C-u"

    def _end(self) -> None:
        deadline = time.monotonic() + LEAVE
        while self._runs() and time.monotonic() < deadline:
            self._ask_to_leave()
        if self._runs():
            # Closes the terminal of everything in the pane, which ends the agent and its processes, and starts the shell again.
            _tmux("respawn-pane", "-k", "-t", self._target())
            _wait_until(lambda: not self._runs(), FORCED)
        if self._runs():
            raise ProviderError(f"Gemini CLI in terminal {self.terminal_id} did not end within {LEAVE + FORCED:.0f} seconds")

    def _runs(self) -> bool:
        """Returns whether the CLI runs. Where `alhena` cannot find the agent, the program in the foreground of the pane decides."""
        if self._traceable:
            return self._is_found()
        pane = self._look()
        return pane is not None and self._is_in_foreground(pane)

    def _is_found(self) -> bool:
        return _alhena(["terminal", "classify", "--here", self.terminal_id], "").returncode != NOT_FOUND

    def _is_in_foreground(self, pane: Pane) -> bool:
        """Returns whether the pane runs something other than its shell."""
        return pane.command not in {"", self._shell}

    def _ask_to_leave(self) -> None:
        """Interrupts the turn or dialog, and then presses Ctrl+C: the first clears the input box, two more end the CLI. In a shell
        it does nothing."""
        if self._is_busy():
            self._press("Escape")
            _wait_until(lambda: not self._is_busy(), 2.0)
        for _ in range(3):
            self._press("C-c")
            time.sleep(0.2)
        _wait_until(lambda: not self._runs(), 3.0)

    def _is_busy(self) -> bool:
        pane = self._look()
        return pane is not None and self._classify(pane).get("status") in BUSY

    def _press(self, key: str) -> None:
        get_backend().send_special_key(self.session_name, self.window_name, key)

    def cleanup(self) -> None:
        """CAO closes the pane, and with it ends everything that ran in it."""
        self._profile_path().unlink(missing_ok=True)
        self._initialized = False

    def notify_status_buffer_reset(self, epoch: int) -> None:
        """Something is about to be sent: what is on the screen is the turn before."""
        self._sent = _sent_now()

    def mark_input_received(self) -> None:
        super().mark_input_received()
        if self._sent is not None:
            self._sent = self._sent._replace(at=time.monotonic())

    # -- the launch

    def _profile(self) -> Any:
        if self._agent_profile is None:
            return None
        try:
            return with_plugin_mcp(load_agent_profile(self._agent_profile), NAME)
        except Exception as error:
            raise ProviderError(f"Failed to load agent profile '{self._agent_profile}': {error}") from error

    def _profile_path(self) -> Path:
        return CAO_HOME_DIR / "alhena" / f"{self.terminal_id}.md"

    def _command(self) -> str:
        command = [_program(), "terminal", "here", "--id", self.terminal_id]
        command += ["--approval", "yolo", "--trust", "--sandbox=off"]
        profile = self._profile()
        model = self._model or (profile.model if profile else None)
        if model:
            command += ["--model", model]
        prompt = self._apply_skill_prompt((profile.system_prompt or profile.prompt or "") if profile else "")
        servers = (profile.mcpServers or {}) if profile else {}
        if prompt or servers:
            command += ["--profile", str(self._write_profile(profile, prompt, servers))]
            command += ["--profile-by", os.environ.get("ALHENA_CAO_PROFILE_BY", "home")]
        for tool in self._denied_tools():
            command += ["--deny-tool", tool]
        # The login shell of the pane may not find what the server does: Gemini CLI, and the Node that it needs.
        found = [os.path.dirname(path) for path in map(shutil.which, ("gemini", "node")) if path]
        places = shlex.quote(":".join(dict.fromkeys(found)))
        return f'env PATH="$PATH":{places} {shlex.join(command)}' if found else shlex.join(command)

    def _write_profile(self, profile: Any, prompt: str, servers: dict[str, Any]) -> Path:
        """What CAO made of the profile, for `alhena`. JSON is YAML, so it can be the front matter."""
        path = self._profile_path()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries = {
            name: entry if isinstance(entry, dict) else entry.model_dump(exclude_none=True)
            for name, entry in servers.items()
        }
        front = json.dumps({"name": profile.name if profile else NAME, "mcpServers": entries})
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(f"---\n{front}\n---\n{prompt}\n")
        return path

    def _denied_tools(self) -> list[str]:
        if self._allowed_tools is None or "*" in self._allowed_tools:
            return []
        every = set().union(*TOOLS.values())
        allowed = every if "@builtin" in self._allowed_tools else set()
        for name in self._allowed_tools:
            allowed |= TOOLS.get(name, set())
        return sorted(every - allowed)

    def _warm_up(self, timeout: float) -> str:
        """Gives the shell's name. The echo of the typed command cannot be taken for its answer."""
        self._type(f"printf 'alh%s\\n' ena-{self.terminal_id}")
        marker = f"alhena-{self.terminal_id}"
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            pane = self._look()
            if pane and any(line.strip() == marker for line in pane.text.splitlines()):
                return pane.command
            time.sleep(0.2)
        raise TimeoutError(f"The shell did not answer within {timeout:.0f} seconds")

    def _type(self, line: str) -> None:
        get_backend().send_keys(self.session_name, self.window_name, line)

    def _wait_until_ready(self, timeout: float) -> None:
        began, stable, pane = time.monotonic(), 0, None
        while time.monotonic() - began < timeout:
            time.sleep(0.3)
            looked = time.monotonic()
            pane = self._look()
            if pane is None:
                continue
            reading = self._classify(pane)
            if pane.command == self._shell and looked - began > START:
                raise ProviderError(f"Gemini CLI was not started, or has ended:\n{_tail(pane)}")
            if reading.get("status") == "waiting":
                raise ProviderError(f"Gemini CLI asks first:\n{_tail(pane)}")
            # Since 0.45 the prompt is there a moment before the CLI listens.
            stable = stable + 1 if reading.get("status") in {"idle", "completed"} else 0
            if stable >= 3:
                return
        seen = _tail(pane) if pane else "no pane"
        raise TimeoutError(f"Gemini CLI initialization timed out after {timeout:.0f} seconds:\n{seen}")

    # -- the screen

    def _target(self) -> str:
        return f"={self.session_name}:={self.window_name}"

    def _look(self) -> Pane | None:
        target = self._target()
        about = ["display-message", "-p", "-t", target, "#{pane_width} #{pane_current_command} #{pane_title}"]
        capture = ["capture-pane", "-p", "-t", target, "-S", f"-{HISTORY_LINES}"]
        shown = _tmux(*about, ";", *capture)
        if shown is None:
            return None
        first, _, text = shown.partition("\n")
        columns, command, title = (first.split(" ", 2) + ["", ""])[:3]
        return Pane(title, columns, text, command)

    def _classify(self, pane: Pane, sent: Sent | None = None) -> dict[str, Any]:
        """By the session too, where there is one; else by the pane alone."""
        found = _classified(pane, self._here(sent))
        if found is None and sent is not None and time.monotonic() - sent.at < UNSEEN:
            return {"status": "processing"}
        return found or _classified(pane, []) or {}

    def _here(self, sent: Sent | None) -> list[str]:
        return ["--here", self.terminal_id] + (["--since", str(sent.since)] if sent else [])

    def _status_now(self, buffer: str, sent: Sent | None) -> TerminalStatus:
        pane = self._look() or Pane("", "", buffer or "")
        if not pane.text.strip():
            return TerminalStatus.UNKNOWN
        reading = self._classify(pane, sent)
        status, turn = reading.get("status"), reading.get("turn")
        # While the pane runs something other than its shell, the agent has not ended.
        lives = self._is_in_foreground(pane)
        if status == "exited" and lives:
            return TerminalStatus.UNKNOWN
        # CAO takes an error for the end of the agent, and types nothing more into it. A turn that failed is over, and the
        # agent is ready for the next; the hook shows it as an error to those who ask CAO. So is one without an answer.
        self.turn_failed = status == "error" and lives
        if self.turn_failed or (status == "idle" and turn):
            return TerminalStatus.COMPLETED
        picked_up = turn is not None or sent is None or time.monotonic() - sent.at < PICK_UP
        if status == "processing" and not picked_up:
            # A command of the CLI's own is no turn.
            return self._status_now(buffer, None)
        return STATUS.get(str(status), TerminalStatus.UNKNOWN)


def _tmux(*arguments: str) -> str | None:
    """Returns what a command of tmux printed, or None if it failed."""
    try:
        done = subprocess.run(
            ["tmux", *arguments], capture_output=True, encoding="utf-8", errors="replace", timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)


def _sent_now() -> Sent:
    return Sent(time.monotonic(), int(time.time() * 1000))


def _tail(pane: Pane) -> str:
    return "\n".join(line for line in pane.text.splitlines() if line.strip())[-2000:]


def _classified(pane: Pane, arguments: list[str]) -> Any:
    command = ["terminal", "classify", "--title", pane.title, *arguments]
    if pane.columns:
        command += ["--columns", pane.columns]
    done = _alhena(command, pane.text)
    if done.returncode != 0:
        logger.debug("alhena terminal classify failed: %s", done.stderr.strip())
        return None
    return json.loads(done.stdout)


def _program() -> str:
    try:
        return find_binary()
    except AlhenaError as error:
        raise ProviderError(str(error)) from error


def _alhena(arguments: list[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_program(), *arguments],
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=30,
        check=False,
    )
