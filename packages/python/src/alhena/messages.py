"""What a run says. The shapes are those of `alhena run` and `alhena sessions show`; nothing is converted here.

Names and fields that the Claude Agent SDK has, too, mean the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union

Json = Mapping[str, Any]


@dataclass
class TextBlock:
    """Text."""

    text: str


@dataclass
class ThinkingBlock:
    """A thought of the model."""

    thinking: str


@dataclass
class ToolUseBlock:
    """A call of a tool, with Claude's name and Claude's arguments."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ToolResultBlock:
    """What a tool gave back."""

    tool_use_id: str
    content: str
    is_error: bool
    diff: str | None = None
    """The change of a file; with `is_error` or `cancelled` what was proposed."""
    exit_code: int | None = None
    """Of a shell command, where known."""
    cancelled: bool = False


@dataclass
class ImageBlock:
    """An image, from a prompt or from a tool."""

    source: dict[str, Any]


ContentBlock = Union[TextBlock, ThinkingBlock, ToolUseBlock, ToolResultBlock, ImageBlock]


@dataclass
class SystemMessage:
    """The run began."""

    session_id: str
    model: str
    subtype: Literal["init"] = "init"


@dataclass
class UserMessage:
    """What the model was told: a prompt, or the results of the tools that it called."""

    content: str | list[ContentBlock]
    id: str
    timestamp: int | None
    """Milliseconds since 1970."""
    original: Any = field(repr=False, default=None)
    """The record as Gemini CLI wrote it; None for tool results, which are in the record of their calls."""


@dataclass
class AssistantMessage:
    """What the model said and did, in order: thoughts, text, tool calls. The results are in the `UserMessage` after it."""

    content: str | list[ContentBlock]
    id: str
    timestamp: int | None
    """Milliseconds since 1970."""
    model: str | None = None
    usage: dict[str, int] | None = None
    """`input_tokens`, `output_tokens`, `total_tokens`, and `cached_tokens`, `thought_tokens` where known."""
    original: Any = field(repr=False, default=None)
    """The record as Gemini CLI wrote it."""

    @property
    def text(self) -> str:
        """What is said in words."""
        if isinstance(self.content, str):
            return self.content
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))


@dataclass
class PartialMessage:
    """A message as far as it has grown (`Options.include_partial_messages`); its `id` stays the same.

    The last one of each `id` is the one in `ResultMessage.messages`.
    """

    message: UserMessage | AssistantMessage


@dataclass
class StreamEvent:
    """An event as it came (`Options.include_events`): see `schemas/event.json`."""

    type: str
    event: dict[str, Any]


@dataclass
class Tokens:
    """How many tokens were used."""

    prompt: int = 0
    """The prompts, cached tokens included."""
    cached: int = 0
    output: int = 0
    """The answers, without thoughts."""
    thoughts: int = 0
    tool: int = 0
    total: int = 0


@dataclass
class Usage(Tokens):
    """How many tokens were used, in all and by model."""

    models: dict[str, Tokens] = field(default_factory=dict)
    cost_usd: float | None = None
    """What they cost in US dollars; none when a model has no known price."""


@dataclass
class FileRecord:
    """A file that changed during the run."""

    path: str
    change: Literal["created", "modified", "deleted"]
    claimed: bool
    """Whether a tool said so; else it changed during the run, by it or by others."""
    verified: bool
    """Whether the disk agrees."""
    tool: str | None = None
    diff: str | None = None


@dataclass
class Failure:
    """Why a run did not succeed."""

    kind: str
    """Such as `auth`, `untrusted`, `rate_limited`, `timeout`, `stalled`, `cancelled`."""
    message: str
    hint: str
    exit_code: int | None = None
    http_status: int | None = None
    retry_after_ms: int | None = None
    stderr: str | None = None


@dataclass
class ResultMessage:
    """How the run ended; always the last message."""

    subtype: Literal["success", "failed", "cancelled", "timeout", "stalled"]
    is_error: bool
    result: str
    """What the model said after the last tool result."""
    text: str
    """All that it said."""
    session_id: str | None
    """To go on by `Options.resume`."""
    duration_ms: int
    usage: Usage
    files: list[FileRecord]
    warnings: list[str]
    failure: Failure | None
    messages: list[UserMessage | AssistantMessage] = field(repr=False)
    """The whole conversation, with what only the session file has: tokens, and the records as they stand there."""
    outcome: dict[str, Any] = field(repr=False)
    """All of it: see `schemas/outcome.json`."""


Message = Union[SystemMessage, UserMessage, AssistantMessage, PartialMessage, StreamEvent, ResultMessage]


def message_of(record: Json) -> UserMessage | AssistantMessage:
    """A message of `--as messages`."""
    content = record["content"]
    blocks = content if isinstance(content, str) else [_block(block) for block in content]
    timestamp: int | None = record["timestamp"]
    if record["role"] == "user":
        return UserMessage(blocks, record["id"], timestamp, record.get("_original"))
    usage = record.get("usage")
    return AssistantMessage(
        blocks, record["id"], timestamp, record.get("model"), dict(usage) if usage else None, record.get("_original")
    )


def _block(block: Json) -> ContentBlock:
    match block["type"]:
        case "text":
            return TextBlock(block["text"])
        case "thinking":
            return ThinkingBlock(block["thinking"])
        case "tool_use":
            return ToolUseBlock(block["id"], block["name"], block["input"])
        case "tool_result":
            return ToolResultBlock(**{key: value for key, value in block.items() if key != "type"})
        case "image":
            return ImageBlock(block["source"])
        case kind:
            raise ValueError(f"an unknown kind of block: {kind}")


def result_of(outcome: dict[str, Any], messages: list[dict[str, Any]]) -> ResultMessage:
    """The last message of a run."""
    failure = outcome.get("failure")
    models = {name: _known(Tokens, tokens) for name, tokens in outcome["usage"]["models"].items()}
    return ResultMessage(
        subtype=outcome["status"],
        is_error=outcome["status"] != "success",
        result=outcome["final_text"],
        text=outcome["text"],
        session_id=outcome["session_id"],
        duration_ms=outcome["duration_ms"],
        usage=_known(Usage, {**outcome["usage"], "models": models}),
        files=[_known(FileRecord, file) for file in outcome["files"]],
        warnings=list(outcome["warnings"]),
        failure=_known(Failure, failure) if failure else None,
        messages=[message_of(message) for message in messages],
        outcome=outcome,
    )


def _known(kind: Any, record: Json) -> Any:
    """The fields that the type has; a newer `alhena` may say more."""
    return kind(**{key: value for key, value in record.items() if key in kind.__dataclass_fields__})
