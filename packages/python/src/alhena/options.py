"""What a run can be told."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from .errors import UsageError
from .permissions import CanUseTool

Seconds = float | int | timedelta
"""A time: seconds, or a `timedelta`."""
StrPath = str | os.PathLike[str]


LISTS = ("include_dirs", "allow_tools", "deny_tools", "policies", "extra_args")


@dataclass
class Options:
    """Options of a run; all can be left out."""

    cwd: StrPath | None = None
    """Where to work; the current directory by default."""
    model: str | None = None
    """The model; Gemini CLI's own choice by default."""
    approval: str = "default"
    """What the model may do without asking: `default` (read only), `auto-edit`, `yolo` (commands too) or `plan`.

    The names of other agents are understood, too: `auto_edit`, `acceptEdits`, `bypassPermissions`.
    """
    trust: bool | Literal["settings"] = False
    """Run in a folder that is not trusted; `"settings"` loads the folder's own settings, too."""
    sandbox: bool | str | None = None
    """On, off, or an engine such as `docker`; what the user's settings say by default."""
    include_dirs: Sequence[StrPath] = ()
    """More directories that the model may use."""
    allow_tools: Sequence[str] = ()
    """Tools that need no approval: a name, or `run_shell_command(PREFIX)`."""
    deny_tools: Sequence[str] = ()
    """Tools that the model does not get."""
    policies: Sequence[StrPath] = ()
    """Policy files of Gemini CLI."""
    mcp_servers: Mapping[str, Mapping[str, Any]] | StrPath | None = None
    """MCP servers by name, as in Gemini CLI's settings, or a JSON file with them."""
    system_prompt: str | None = None
    """Instructions for the model beside the prompt."""
    system_prompt_mode: Literal["append", "replace"] = "append"
    """Whether they come after the CLI's own or replace them."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for `alhena` and Gemini CLI, beside those of this process."""
    resume: str | Literal[True] | None = None
    """Go on with a session: its id, or True for the latest of the folder."""
    session_id: str | None = None
    """The id for a new session."""
    timeout: Seconds | Literal["none"] | None = None
    """Stop the run, or a turn of a `Client`, after this time. It is then the only limit, unless the next two are given. `"none"` for no
    limit, also where a file with defaults has one."""
    first_event_timeout: Seconds | Literal["none"] | None = None
    """Stop the run if nothing comes within this time; 60 s if no `timeout` is given, `"none"` for no limit."""
    stall_timeout: Seconds | Literal["none"] | None = None
    """Stop the run if it is silent for this long while no tool runs; 5 min if no `timeout` is given, `"none"` for no limit."""
    max_turns: int | None = None
    """How many turns the model may take."""
    max_tokens: int | None = None
    """How many tokens the run may take."""
    max_cost: float | None = None
    """How many US dollars it may cost."""
    max_calls: int | None = None
    """How many model calls it may make."""
    max_attempts: int | None = None
    """How often a failing request to the API is tried."""
    schema: Mapping[str, object] | StrPath | None = None
    """The answer has to fit this JSON schema, or the one in this file; the outcome then has it as `data`."""
    schema_attempts: int | None = None
    """How often the model may try again when its answer does not fit; 2 when absent."""
    gemini: StrPath | None = None
    """The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there."""
    offline: bool | StrPath = False
    """Use the scripted model on this machine instead of Gemini; a file is its scenario."""
    record: StrPath | None = None
    """Keep everything that the CLI wrote in this directory, which must not exist, for `alhena parse`."""
    extra_args: Sequence[str] = ()
    """More arguments for Gemini CLI itself."""
    can_use_tool: CanUseTool | None = None
    """Whether a tool may be used that the options do not decide about; without it, it may not. Only a `Client` can ask."""
    use_config: bool = True
    """Whether defaults in files (`alhena help config`) count."""
    include_partial_messages: bool = False
    """Whether `query` also yields messages while they grow."""
    include_events: bool = False
    """Whether `query` also yields each event as it comes."""
    binary: str | None = None
    """The `alhena` to run; by default it is looked for."""

    def arguments(self, scratch: Path) -> list[str]:
        """The options of `alhena run`. What is too long or too private for a command line goes into files in `scratch`."""
        arguments = [f"--approval={self.approval}", *self._limits()]

        def add(name: str, value: object) -> None:
            if value is not None:
                arguments.append(f"--{name}={value}")

        def each(name: str, values: Sequence[object]) -> None:
            for value in values:
                add(name, value)

        for name in LISTS:
            # A text would be taken for a list of its letters.
            if isinstance(getattr(self, name), (str, bytes)):
                raise UsageError(f"{name} must be a list, got: {getattr(self, name)!r}")

        add("dir", _path(self.cwd))
        add("model", self.model)
        if self.trust:
            arguments.append("--trust=settings" if self.trust == "settings" else "--trust")
        if self.sandbox is not None:
            add("sandbox", self.sandbox if isinstance(self.sandbox, str) else "on" if self.sandbox else "off")
        each("include-dir", [_path(directory) for directory in self.include_dirs])
        each("allow-tool", self.allow_tools)
        each("deny-tool", self.deny_tools)
        each("policy", [_path(policy) for policy in self.policies])
        if isinstance(self.mcp_servers, Mapping):
            if self.mcp_servers:
                add("mcp-server", _private(scratch / "mcp.json", json.dumps({"mcpServers": self.mcp_servers})))
        else:
            add("mcp-server", _path(self.mcp_servers))
        if self.system_prompt:
            add("system-prompt-file", _private(scratch / "system-prompt.md", self.system_prompt))
            add("system-prompt-mode", self.system_prompt_mode)
        if self.resume is not None:
            arguments.append("--resume" if self.resume is True else f"--resume={self.resume}")
        add("session-id", self.session_id)
        add("max-turns", self.max_turns)
        add("max-tokens", self.max_tokens)
        add("max-cost", self.max_cost)
        add("max-calls", self.max_calls)
        add("max-attempts", self.max_attempts)
        if isinstance(self.schema, Mapping):
            add("schema", _private(scratch / "schema.json", json.dumps(self.schema)))
        else:
            add("schema", _path(self.schema))
        add("schema-attempts", self.schema_attempts)
        add("gemini", None if self.gemini is None else os.fspath(self.gemini))
        if self.offline:
            arguments.append("--offline" if self.offline is True else f"--offline={_path(self.offline)}")
        if not self.use_config:
            arguments.append("--no-config")
        return arguments

    def _limits(self) -> list[str]:
        timeout = None if self.timeout is None else _limit(self.timeout)
        limits = {
            "timeout": timeout,
            "first-event-timeout": timeout if self.first_event_timeout is None else _limit(self.first_event_timeout),
            "stall-timeout": timeout if self.stall_timeout is None else _limit(self.stall_timeout),
        }
        return [f"--{name}={limit}" for name, limit in limits.items() if limit is not None]


def _limit(time: Seconds | Literal["none"]) -> str:
    return "none" if time == "none" else f"{_milliseconds(time)}ms"


def _milliseconds(time: Seconds) -> int:
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise UsageError(f"a time must be a number of seconds or a timedelta, got: {time!r}")
    if not 0 < seconds < math.inf:
        raise UsageError(f"a time must be more than nothing, got: {time!r}")
    return max(1, round(seconds * 1000))


def _path(path: StrPath | None) -> str | None:
    """Absolute: it means what it means to the caller, wherever `alhena` works."""
    return None if path is None else absolute(path)


def absolute(path: StrPath) -> str:
    """A path from where this process works."""
    try:
        return os.path.abspath(os.fspath(path))
    except TypeError:
        raise UsageError(f"a path must be a string or a Path, got: {path!r}") from None


def _private(path: Path, text: str) -> str:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8", errors="surrogatepass") as file:
        file.write(text)
    return str(path)
