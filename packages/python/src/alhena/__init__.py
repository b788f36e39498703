"""Gemini CLI as a part that other software can rely on.

    import asyncio
    from alhena import Options, ResultMessage, query

    async def main() -> None:
        async for message in query("Fix the failing test", Options(cwd="app", approval="auto-edit")):
            if isinstance(message, ResultMessage):
                print(message.result)

    asyncio.run(main())

Everything is done by the program `alhena`, which comes with the package: it runs Gemini CLI, knows whether it really
succeeded, and leaves no process behind. This module needs nothing but Python's standard library.
"""

from .binary import find_binary
from .client import Client
from .errors import (
    AlhenaError,
    BinaryNotFoundError,
    CommandFailedError,
    RunFailedError,
    UnsupportedPlatformError,
    UsageError,
)
from .messages import (
    AssistantMessage,
    ContentBlock,
    Failure,
    FileRecord,
    ImageBlock,
    Message,
    PartialMessage,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    Tokens,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserMessage,
)
from .options import Options
from .permissions import (
    CanUseTool,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)
from .query import ask, query
from .sessions import Detected, SessionInfo, detect, list_sessions, load_messages

__all__ = [
    "AlhenaError",
    "AssistantMessage",
    "BinaryNotFoundError",
    "CanUseTool",
    "Client",
    "CommandFailedError",
    "ContentBlock",
    "Detected",
    "Failure",
    "FileRecord",
    "ImageBlock",
    "Message",
    "Options",
    "PartialMessage",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "ResultMessage",
    "RunFailedError",
    "SessionInfo",
    "StreamEvent",
    "SystemMessage",
    "TextBlock",
    "ThinkingBlock",
    "Tokens",
    "ToolPermissionContext",
    "ToolResultBlock",
    "ToolUseBlock",
    "UnsupportedPlatformError",
    "Usage",
    "UsageError",
    "UserMessage",
    "ask",
    "detect",
    "find_binary",
    "list_sessions",
    "load_messages",
    "query",
]
