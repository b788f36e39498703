"""What can go wrong. Every error has a kind, a message that begins with its reason, and a hint that says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .run_options import OPTION_OF

if TYPE_CHECKING:
    from .messages import Failure, ResultMessage


def with_options(text: str) -> str:
    """A message of `alhena` with the options of this package in place of the settings that it names."""
    return re.sub("`([a-z_]+)`", lambda name: f"`{OPTION_OF.get(name[1], name[1])}`", text)


def _reason(failure: Failure) -> str:
    """Why a run failed. Messages of Gemini CLI and of the API stay as they are; a run that never began has none."""
    own = failure.kind == "budget" or (failure.kind == "input" and failure.exit_code is None and failure.http_status is None)
    return with_options(failure.message) if own else failure.message


class AlhenaError(Exception):
    """The base of all errors of this package."""

    def __init__(self, kind: str, message: str, hint: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        """What kind of failure it is, such as `auth` or `timeout`; `alhena help exit-codes` lists those of a run."""
        self.message = message
        """What went wrong, for people."""
        self.hint = hint
        """What can be done about it; may be empty."""
        self.exit_code = exit_code
        """The exit code of `alhena`, where it ran."""

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class BinaryNotFoundError(AlhenaError):
    """The program `alhena` is not there, or cannot be started."""

    def __init__(self, message: str) -> None:
        super().__init__("binary_not_found", message, "Install the package `alhena`, or say where it is by ALHENA_BIN.")


class UnsupportedPlatformError(BinaryNotFoundError):
    """There is no `alhena` for this system."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.kind = "unsupported_platform"
        self.hint = hint


class UsageError(AlhenaError, ValueError):
    """What was asked for makes no sense; nothing was started."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__("usage", message, hint)


class CommandFailedError(AlhenaError):
    """`alhena` refused what it was asked, or answered what nobody understands."""


class RunFailedError(AlhenaError):
    """A run did not succeed. Comes after the run's result, which says the same and more."""

    def __init__(self, result: ResultMessage, exit_code: int | None) -> None:
        failure = result.failure
        kind = failure.kind if failure else result.subtype
        message = _reason(failure) if failure else f"the run ended with {result.subtype}"
        super().__init__(kind, message, with_options(failure.hint) if failure else "", exit_code)
        self.result = result
        """The result of the run."""
