"""What is installed, and what was said before."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import process
from .errors import CommandFailedError
from .messages import AssistantMessage, UserMessage, message_of
from .options import absolute, trust_arguments
from .query import refused
from .run_options import StrPath

# The longest of these reads a store of a gigabyte.
LIMIT = 120.0
NOT_FOUND = 3


@dataclass
class Detected:
    """The Gemini CLI that would run."""

    path: str
    version: str | None
    place: str
    """Where it was found, such as `path` or `project`."""
    details: dict[str, Any] = field(repr=False)
    """All that `alhena detect --json` says."""


@dataclass
class SessionInfo:
    """A session in the store of Gemini CLI."""

    id: str
    details: dict[str, Any] = field(repr=False)
    """All that `alhena sessions list --json` says."""


def detect(
    cwd: StrPath | None = None,
    *,
    gemini: StrPath | None = None,
    trust: bool | Literal["settings"] = False,
    env: Mapping[str, str] | None = None,
    use_config: bool = True,
    binary: str | None = None,
) -> Detected | None:
    """The Gemini CLI that would run in a directory, or None when there is none.

    `query` with the same options runs this one.
    """
    arguments = ["detect", "--json", _directory(cwd)]
    if gemini is not None:
        arguments.append(f"--gemini={os.fspath(gemini)}")
    arguments += trust_arguments(trust)
    if not use_config:
        arguments.append("--no-config")
    done = process.communicate_now(arguments, env=env, binary=binary, timeout=LIMIT)
    if done.exit_code == NOT_FOUND:
        return None
    found = _json(done)
    return Detected(found["path"], found.get("version"), found["place"], found)


def list_sessions(
    cwd: StrPath | None = None, *, env: Mapping[str, str] | None = None, binary: str | None = None
) -> list[SessionInfo]:
    """The sessions of a folder, the newest first."""
    arguments = ["sessions", "list", "--json", _directory(cwd)]
    found = _json(process.communicate_now(arguments, env=env, binary=binary, timeout=LIMIT))
    return [SessionInfo(session["id"], session) for session in found]


def load_messages(
    session: str | None = None,
    cwd: StrPath | None = None,
    *,
    env: Mapping[str, str] | None = None,
    binary: str | None = None,
) -> list[UserMessage | AssistantMessage]:
    """The messages of a session of a folder: the one with this id, or the latest. An id is never taken for a path."""
    if session is not None and (not isinstance(session, str) or not session or "/" in session or os.sep in session or session.endswith((".json", ".jsonl"))):
        raise CommandFailedError("usage", f"not the id of a session: {session!r}", "`list_sessions` gives them.")
    arguments = [
        "sessions",
        "show",
        "--as=messages",
        _directory(cwd),
        "--",
        session or "latest",
    ]
    found = _json(process.communicate_now(arguments, env=env, binary=binary, timeout=LIMIT))
    return [message_of(message) for message in found]


def _directory(cwd: StrPath | None) -> str:
    return f"--dir={absolute('.' if cwd is None else cwd)}"


def _json(done: process.Finished) -> Any:
    if done.exit_code != 0:
        raise refused(done.exit_code, done.stderr, done.stdout)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise CommandFailedError("protocol", f"alhena answered what is no JSON: {error}", "", done.exit_code) from None
