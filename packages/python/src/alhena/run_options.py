# Generated from the Rust types; do not edit. To renew: UPDATE_SCHEMAS=1 cargo test -p alhena-hosts --test it schemas
"""The options of a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

Seconds = float | int | timedelta
"""A time: seconds, or a `timedelta`."""
StrPath = str | os.PathLike[str]


@dataclass
class RunOptions:
    """Options of a run; all can be left out."""

    cwd: StrPath | None = None
    """Work in this directory; the current one by default."""
    model: str | None = None
    """The model."""
    approval: str = "default"
    """The actions that the model may take without asking.

    One of default, suggest, auto-edit, auto_edit, autoEdit, acceptEdits, yolo, full_auto, full-auto, bypassPermissions, plan.
    """
    trust: bool | Literal["settings"] = False
    """Run in a folder that is not trusted; the value settings loads the folder's own settings too."""
    sandbox: bool | str | None = None
    """The sandbox: on, off, inherit, docker, podman, sandbox-exec, runsc or lxc."""
    include_dirs: Sequence[StrPath] = ()
    """More directories that the model may use."""
    allow_tools: Sequence[str] = ()
    """Allow tools: a name, or run_shell_command(PREFIX)."""
    deny_tools: Sequence[str] = ()
    """Deny tools."""
    policies: Sequence[StrPath] = ()
    """Policy files of Gemini CLI."""
    mcp_servers: Mapping[str, Mapping[str, Any]] | StrPath | None = None
    """MCP servers by name, as in Gemini CLI's settings, or a JSON file with them."""
    system_prompt: str | None = None
    """Instructions for the model beside the prompt."""
    system_prompt_mode: Literal["append", "replace"] = "append"
    """Add the instructions to the CLI's own, or replace them [default: append]."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for `alhena` and Gemini CLI, beside those of this process."""
    resume: str | Literal[True] | None = None
    """Continue a session: its id, or true for the latest of the folder."""
    session_id: str | None = None
    """The id for the new session."""
    timeout: Seconds | Literal["none"] | None = None
    """Stop the run, or a turn of a conversation, after this time. It is then the only limit of time, unless the next two are given. `none` is no limit, also where a file with defaults has one."""
    first_event_timeout: Seconds | Literal["none"] | None = None
    """Stop when nothing arrives within this time; 60 s if no `timeout` is given. `none` is no limit, also where a file with defaults has one."""
    stall_timeout: Seconds | Literal["none"] | None = None
    """Stop after this long without output while no tool runs; 5 min if no `timeout` is given. `none` is no limit, also where a file with defaults has one."""
    max_turns: int | None = None
    """Stop after this many turns of the model."""
    max_attempts: int | None = None
    """How often a failing request to the API is tried."""
    max_tokens: int | None = None
    """Stop after this many tokens; `alhena help budget` explains it."""
    max_cost: float | None = None
    """Stop once the run has cost this many US dollars."""
    max_calls: int | None = None
    """Stop after this many model calls."""
    schema: Mapping[str, object] | StrPath | None = None
    """Require an answer that fits this JSON schema, or the one in this file; the outcome then has it as `data`."""
    schema_attempts: int | None = None
    """How often the model may try again when its answer does not fit [default: 2]."""
    record: StrPath | None = None
    """Keep everything that the CLI wrote in this directory, which must not exist, for `alhena parse`."""
    use_config: bool = True
    """Use the files with defaults; `alhena help config` explains them."""
    extra_args: Sequence[str] = ()
    """More arguments for Gemini CLI itself."""
    offline: bool | StrPath = False
    """Use the scripted model on this machine instead of Gemini; with a file, that scenario."""
    gemini: StrPath | None = None
    """The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there."""


OPTION_OF = {
    "dir": "cwd",
    "include_dir": "include_dirs",
    "allow_tool": "allow_tools",
    "deny_tool": "deny_tools",
    "policy": "policies",
    "mcp_server": "mcp_servers",
    "system_prompt_file": "system_prompt",
    "no_config": "use_config",
    "args": "extra_args",
}
"""The option in place of a setting that errors of `alhena` name, where the names differ."""
