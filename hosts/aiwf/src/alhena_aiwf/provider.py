"""The provider."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import alhena
from alhena import process
from alhena.query import refused

from .engine import ProviderError, ProviderResult, ResponseProvider

logger = logging.getLogger(__name__)

FILE_WRITE_TOOLS = {"write_file", "replace"}
VALID_APPROVAL_MODES = {"default", "auto_edit", "yolo"}
DEFAULT_TIMEOUT = 600
NOT_FOUND = "Gemini CLI not found. Install from: https://github.com/google-gemini/gemini-cli"
# The exit code of `alhena detect` that says so.
NOT_INSTALLED = 3
# `alhena` ends a run in time by itself; this is for an `alhena` that could not.
GRACE = 30.0
# How long it may look for Gemini CLI.
VALIDATE_TIMEOUT = 60.0
# Of lines that were skipped, this many are shown, each this long.
SAMPLES = 3
SAMPLE_LENGTH = 200
CONFIG_KEYS = ["model", "sandbox", "approval_mode", "include_directories", "allowed_tools", "working_dir", "timeout"]

# Those that the engine's document does not have.
OWN_KEYS = ["schema"]

Context = Mapping[str, Any]
T = TypeVar("T")


class GeminiCliAIProvider(ResponseProvider):
    """Runs Gemini CLI on a prompt and says which files it wrote."""

    def __init__(self, config: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        """Takes the configuration as a mapping, as keywords (as the engine's factory gives it), or both; keywords win."""
        self.config: dict[str, Any] = {**(config or {}), **keywords}
        self._validate_config()
        given = {key: value for key, value in self.config.items() if value is not None}
        self._model: str | None = given.get("model")
        self._sandbox: bool = given.get("sandbox", False)
        self._approval_mode: str = given.get("approval_mode", "yolo")
        self._include_directories: list[str] = given.get("include_directories", [])
        self._allowed_tools: list[str] | None = given.get("allowed_tools")
        self._working_dir: str | None = given.get("working_dir")
        self._timeout: float = given.get("timeout", DEFAULT_TIMEOUT)
        self._schema: Mapping[str, Any] | str | None = given.get("schema")

    # -- the engine's surface

    @classmethod
    def get_metadata(cls) -> dict[str, Any]:
        return {
            "name": "gemini-cli",
            "description": "Gemini CLI AI agent via subprocess",
            "requires_config": False,
            "config_keys": list(CONFIG_KEYS),
            "default_response_timeout": DEFAULT_TIMEOUT,
            "fs_ability": "local-write",
        }

    def validate(self) -> None:
        """Raises ProviderError unless the Gemini CLI is there that `generate` would run."""
        directory = self._directory(None)
        try:
            found = process.communicate_now(["detect", "--trust", f"--dir={directory}"], timeout=VALIDATE_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise ProviderError(f"Looking for Gemini CLI timed out after {VALIDATE_TIMEOUT:g}s.") from error
        except alhena.AlhenaError as error:
            raise ProviderError(str(error)) from error
        if found.exit_code == NOT_INSTALLED:
            logger.debug("alhena detect: %s", found.stderr.strip())
            raise ProviderError(NOT_FOUND)
        if found.exit_code != 0:
            # Such as a working directory that is not there: its own words say what.
            raise ProviderError(str(refused(found.exit_code, found.stderr)))

    def generate(
        self,
        prompt: str,
        context: Context | None = None,
        system_prompt: str | None = None,
        connection_timeout: int | None = None,
        response_timeout: int | None = None,
    ) -> ProviderResult:
        """Answers the prompt, or the one in `context["prompt_file"]`. Blocks until it is done.

        `connection_timeout` means nothing here; `response_timeout` counts when the configuration has no `timeout`.
        """
        return _run(self._async_generate(prompt, context, system_prompt, response_timeout))

    # -- the seams

    async def _async_generate(
        self,
        prompt: str,
        context: Context | None,
        system_prompt: str | None,
        response_timeout: float | None = None,
    ) -> ProviderResult:
        for name, value, kind in (("prompt", prompt, str), ("context", context or {}, Mapping), ("system_prompt", system_prompt or "", str)):
            if not isinstance(value, kind):
                raise ProviderError(f"{name} must be a {kind.__name__.lower()}, got: {type(value).__name__}")
        has_own = self.config.get("timeout") is not None
        timeout = self._timeout if has_own else response_timeout or self._timeout
        with tempfile.TemporaryDirectory(prefix="aiwf-gemini-") as directory:
            scratch = Path(directory)
            recording = scratch / "recording"
            options = self._options(context, system_prompt, timeout)
            try:
                told = options.arguments(scratch)
            except alhena.AlhenaError as error:
                raise ProviderError(str(error)) from error
            arguments = ["run", "--as=aiwf", *told, f"--record={recording}"]
            prompt_file = (context or {}).get("prompt_file")
            if prompt_file:
                # The model reads the file itself; the prompt string is not sent.
                arguments.append("--prompt-by=flag")
                prompt = f"Process the prompt in {prompt_file}"
            else:
                arguments.append("--prompt-by=stdin")
            arguments += ["-", "--", *options.extra_args] if options.extra_args else ["-"]
            stdin = prompt.encode("utf-8", "surrogatepass")
            try:
                done = await asyncio.wait_for(process.communicate(arguments, stdin=stdin), timeout=timeout + GRACE)
            except asyncio.TimeoutError:
                raise ProviderError(_timed_out(timeout)) from None
            except alhena.AlhenaError as error:
                started = isinstance(error.__cause__, OSError)
                raise ProviderError(f"{NOT_FOUND}\n{error}" if started else str(error)) from error
            outcome = self._log(recording, done.stderr)
        if outcome.get("status") in ("timeout", "stalled"):
            raise ProviderError(f"{_timed_out(timeout)}\n{outcome['failure']['message']}")
        return self._read_answer(done)

    def _options(self, context: Context | None, system_prompt: str | None, timeout: float) -> alhena.Options:
        base = self._directory(context)
        told = _read_args(self._build_args(context))
        return alhena.Options(
            cwd=base,
            model=told.model,
            approval=told.approval,
            trust=True,
            sandbox=True if told.sandbox else None,
            # Relative ones mean what they mean where the CLI works.
            include_dirs=[base / directory for directory in told.include_directories] + self._prompt_dir(base, context),
            allow_tools=told.allowed_tools,
            system_prompt=system_prompt,
            timeout=timeout,
            schema=self._schema,
            extra_args=told.others,
        )

    def _build_args(self, context: Context | None) -> list[str]:
        """Builds the command line of Gemini CLI for this configuration, as the engine's document has it.

        `generate` reads it: a subclass that changes it changes the run. Arguments that `alhena` has no option for are passed to the
        CLI unchanged. How `alhena` writes the others depends on the release of the CLI.
        """
        args = ["-o", "stream-json"]
        if self._approval_mode == "yolo":
            args.append("-y")
        elif self._approval_mode != "default":
            args += ["--approval-mode", self._approval_mode]
        if self._model:
            args += ["-m", self._model]
        if self._sandbox:
            args.append("-s")
        for directory in self._include_directories:
            args += ["--include-directories", directory]
        for tool in self._allowed_tools or []:
            args += ["--allowed-tools", tool]
        return args

    def _directory(self, context: Context | None) -> Path:
        """Where the CLI works."""
        directory = self._working_dir or (context or {}).get("project_root") or "."
        return Path(os.path.abspath(directory))

    def _prompt_dir(self, base: Path, context: Context | None) -> list[Path]:
        """The prompt file's directory, if the model could not read there otherwise."""
        prompt_file = (context or {}).get("prompt_file")
        if not prompt_file:
            return []
        parent = (base / str(prompt_file)).resolve().parent
        root = base.resolve()
        return [] if parent == root or root in parent.parents else [parent]

    def _parse_ndjson_stream(self, stdout: bytes) -> tuple[str, dict[str, None]]:
        """Text and written files of a stream that Gemini CLI wrote. Malformed lines are skipped, and shown in the log."""
        converted = process.communicate_now(["parse", "--from=stream-json", "--as=aiwf", "-"], stdin=stdout)
        if not converted.stdout:
            raise ProviderError(f"The stream could not be read: {converted.stderr.strip()}")
        _log_skipped(["--from=stream-json", "-"], stdout)
        answer = json.loads(converted.stdout)
        return answer["response"], dict(answer["files"])

    def _wrap_process_error(self, returncode: int, stderr: str) -> ProviderError:
        lower = stderr.lower()
        if "auth" in lower or "login" in lower:
            return ProviderError(f"Gemini CLI authentication error. Run: gemini auth login\n{stderr}")
        if returncode == 127:
            return ProviderError(NOT_FOUND)
        return ProviderError(f"Gemini CLI failed (exit {returncode}): {stderr}")

    def _validate_config(self) -> None:
        unknown = sorted(set(self.config) - {*CONFIG_KEYS, *OWN_KEYS})
        if unknown:
            name = type(self).__name__
            warnings.warn(f"Unknown {name} config keys ignored: {unknown}", UserWarning, stacklevel=3)
        timeout = self.config.get("timeout")
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
            raise ValueError(f"timeout must be a number, got: {type(timeout).__name__}")
        if timeout is not None and not 0 < timeout < math.inf:
            raise ValueError("timeout must be > 0")
        approval_mode = self.config.get("approval_mode")
        if approval_mode is not None and not (isinstance(approval_mode, str) and approval_mode in VALID_APPROVAL_MODES):
            raise ValueError(f"approval_mode must be one of {sorted(VALID_APPROVAL_MODES)}, got: {approval_mode!r}")
        for key in ("include_directories", "allowed_tools"):
            value = self.config.get(key)
            if value is not None and not isinstance(value, list):
                raise ValueError(f"{key} must be a list, got: {type(value).__name__}")
        for key in ("model", "working_dir"):
            value = self.config.get(key)
            if value is not None and not isinstance(value, (str, os.PathLike)):
                raise ValueError(f"{key} must be a string, got: {type(value).__name__}")

        schema = self.config.get("schema")
        if schema is not None and not isinstance(schema, (Mapping, str, os.PathLike)):
            raise ValueError(f"schema must be a JSON schema or a file, got: {type(schema).__name__}")

    # -- what came of it

    def _read_answer(self, done: process.Finished) -> ProviderResult:
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or "response" not in answer:
            # `alhena` refused its arguments or was killed, and its own words say why; or, in the engine's tests, what stands
            # in its place answers as the CLI itself does.
            if done.exit_code != 0:
                raise self._wrap_process_error(done.exit_code, done.stderr)
            text, written = self._parse_ndjson_stream(done.stdout)
            return ProviderResult(response=text, files=dict(written))
        if "error" in answer:
            raise ProviderError(answer["error"])
        return ProviderResult(response=answer["response"], files=dict(answer["files"]))

    def _log(self, recording: Path, stderr: str) -> dict[str, Any]:
        """What happened, for whoever reads the log; the outcome."""
        for line in stderr.splitlines():
            logger.debug("alhena: %s", line)
        try:
            outcome: dict[str, Any] = json.loads((recording / "outcome.json").read_bytes())
        except (OSError, ValueError):
            return {}
        logger.info("Gemini CLI session %s, models %s", outcome["session_id"], ", ".join(outcome["models"]))
        for warning in outcome["warnings"]:
            logger.warning("Gemini CLI: %s", warning)
        if outcome["malformed"]["lines"]:
            _log_skipped([str(recording)], b"")
        usage = {key: value for key, value in outcome["usage"].items() if key != "models"}
        logger.info("Gemini CLI ended with %s after %d ms: %s", outcome["status"], outcome["duration_ms"], usage)
        return outcome


class GeminiCliProvider(GeminiCliAIProvider):
    """The same by the name that it has in the engine's document."""


@dataclass
class _Told:
    """What a command line of Gemini CLI asks for."""

    approval: str = "default"
    model: str | None = None
    sandbox: bool = False
    include_directories: list[str] = field(default_factory=list)
    allowed_tools: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


# The long names of the options that `_build_args` writes.
SHORT = {"-m": "--model", "-o": "--output-format", "-s": "--sandbox", "-y": "--yolo"}
# The values of a switch; without one it is on.
SWITCH = {"": True, "true": True, "false": False}


def _read_args(args: Sequence[str]) -> _Told:
    """Reads what `_build_args` wrote, as Gemini CLI reads it."""
    told = _Told()
    words = iter(args)
    for word in words:
        name, has_value, value = word.partition("=") if word.startswith("--") else (SHORT.get(word, word), "", "")

        def argument() -> str:
            given = value if has_value else next(words, None)
            if given is None:
                raise ProviderError(f"{word} needs a value")
            return given

        def several() -> list[str]:
            return [one.strip() for one in argument().split(",") if one.strip()]

        match name:
            case "--yolo" if value in SWITCH:
                told.approval = "yolo" if SWITCH[value] else told.approval
            case "--sandbox" if value in SWITCH:
                told.sandbox = SWITCH[value]
            case "--approval-mode":
                told.approval = argument()
            case "--model":
                told.model = argument()
            case "--include-directories":
                told.include_directories += several()
            case "--allowed-tools":
                told.allowed_tools += several()
            case "--output-format":
                # `alhena` always reads stream-json.
                argument()
            case _:
                told.others.append(word)
    return told


def _log_skipped(source: list[str], stdin: bytes) -> None:
    """Samples of lines that are no events."""
    events = process.communicate_now(["parse", "--as=events", *source], stdin=stdin).stdout.splitlines()
    malformed = [event for event in map(json.loads, events) if event["type"] == "malformed"]
    if malformed:
        samples = [event["sample"][:SAMPLE_LENGTH] for event in malformed[:SAMPLES]]
        logger.warning("Malformed JSON lines (%d): %s", len(malformed), samples)


def _timed_out(timeout: float) -> str:
    return f"Gemini CLI timed out after {timeout:g}s. Consider increasing timeout config."


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, also when a loop already runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    ended: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            ended.append(asyncio.run(coroutine))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return ended[0]
