"""Whether a tool may be used: what a `Client` asks, and what is answered.

Names that the Claude Agent SDK has, too, mean the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Union


@dataclass
class ToolPermissionContext:
    """What else is known of a call."""

    tool_use_id: str
    """The `id` of its `ToolUseBlock`."""
    title: str
    """What Gemini CLI calls it, for people."""


@dataclass
class PermissionResultAllow:
    """It may be used."""

    remember: bool = False
    """And the same again, without a question, as long as the conversation lasts: this command, these files, this tool of a server."""


@dataclass
class PermissionResultDeny:
    """It may not."""

    message: str = ""
    """Why; the model is told."""
    interrupt: bool = False
    """Whether the turn ends here."""


PermissionResult = Union[PermissionResultAllow, PermissionResultDeny]
CanUseTool = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult]]
"""Gets the tool by Claude's name, its arguments in Claude's shape, and what else is known."""


def answer_of(result: PermissionResult) -> dict[str, Any]:
    """The answer as `alhena chat --control` reads it."""
    if isinstance(result, PermissionResultAllow):
        return {"behavior": "allow", "remember": bool(result.remember)}
    if isinstance(result, PermissionResultDeny):
        return {"behavior": "deny", "message": result.message, "interrupt": bool(result.interrupt)}
    raise TypeError(f"can_use_tool must give PermissionResultAllow or PermissionResultDeny, got: {result!r}")
