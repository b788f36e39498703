"""What a run can be told."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from .errors import UsageError
from .permissions import CanUseTool
from .run_options import RunOptions, Seconds, StrPath

LISTS = ("include_dirs", "allow_tools", "deny_tools", "policies", "extra_args")


@dataclass
class Options(RunOptions):
    """Options of a run; all can be left out."""

    can_use_tool: CanUseTool | None = None
    """Whether a tool may be used that the options do not decide about; without it, it may not. Only a `Client` can ask."""
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
        arguments += trust_arguments(self.trust)
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
        arguments = []
        for name in ("timeout", "first_event_timeout", "stall_timeout"):
            own: Seconds | Literal["none"] | None = getattr(self, name)
            limit = _limit("timeout", self.timeout) if own is None else _limit(name, own)
            if limit is not None:
                arguments.append(f"--{name.replace('_', '-')}={limit}")
        return arguments


def trust_arguments(trust: object) -> list[str]:
    """The option for a folder that is not trusted. A typo must not trust it."""
    if trust is None or trust is False:
        return []
    if trust is True:
        return ["--trust"]
    if trust == "settings":
        return ["--trust=settings"]
    raise UsageError(f"trust must be True, False or 'settings', got: {trust!r}")


def _limit(name: str, time: Seconds | Literal["none"] | None) -> str | None:
    if time is None:
        return None
    if time == "none":
        return "none"
    seconds = time.total_seconds() if isinstance(time, timedelta) else time
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise UsageError(f"{name} must be a number of seconds or a timedelta, got: {time!r}")
    if not 0 < seconds < math.inf:
        raise UsageError(f"{name} must be more than 0, got: {time!r}")
    return f"{max(1, round(seconds * 1000))}ms"


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
