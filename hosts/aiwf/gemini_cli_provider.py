"""Gemini CLI as a response provider of the workflow engine aiwf, through `alhena`.

The surface is that of the engine's own `GeminiCliProvider`: the same constructor, `validate`, `generate`, `get_metadata`
and the same texts in the errors. What differs is what is behind it: `alhena` starts Gemini CLI, knows whether it really
succeeded, and leaves no process behind when the time is up. Python's standard library is all it needs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

try:  # Inside aiwf its own classes are used, so that the engine recognises them.
    from aiwf.domain.errors import ProviderError
    from aiwf.domain.models.provider_result import ProviderResult
    from aiwf.domain.providers.response_provider import ResponseProvider
except ImportError:
    from dataclasses import dataclass, field

    class ProviderError(Exception):
        """A provider could not do what it was asked."""

    @dataclass
    class ProviderResult:
        """What a provider answers: a text, and files, `None` for each that it wrote itself."""

        response: str = ""
        files: dict[str, str | None] = field(default_factory=dict)

    class ResponseProvider:
        """The base of all providers."""


DEFAULT_TIMEOUT = 600
VALID_APPROVAL_MODES = {"default", "auto_edit", "yolo"}
NOT_FOUND = "Gemini CLI not found. Install from: https://github.com/google-gemini/gemini-cli"
# `alhena` ends a run in time by itself; this is for an `alhena` that could not.
GRACE = 30


class GeminiCliProvider(ResponseProvider):
    """Runs Gemini CLI on a prompt and says which files it wrote."""

    def __init__(self, config: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        """Takes the configuration as a mapping, as keywords, or both; keywords win."""
        self.config: dict[str, Any] = {**(config or {}), **keywords}
        self._validate_config()

    # -- the engine's surface

    @classmethod
    def get_metadata(cls) -> dict[str, Any]:
        return {
            "name": "gemini-cli",
            "description": "Gemini CLI AI agent via subprocess",
            "requires_config": False,
            "config_keys": [
                "model",
                "sandbox",
                "approval_mode",
                "include_directories",
                "allowed_tools",
                "working_dir",
                "timeout",
            ],
            "default_response_timeout": DEFAULT_TIMEOUT,
            "fs_ability": "local-write",
        }

    def validate(self) -> None:
        """Raises ProviderError unless Gemini CLI is there."""
        code, _, stderr = _run(self._async_alhena(["detect"]))
        if code != 0:
            logger.debug("alhena detect: %s", stderr.strip())
            raise ProviderError(NOT_FOUND)

    def generate(
        self,
        prompt: str,
        context: Mapping[str, Any] | None = None,
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
        context: Mapping[str, Any] | None,
        system_prompt: str | None,
        response_timeout: float | None = None,
    ) -> ProviderResult:
        timeout = self.config.get("timeout") or response_timeout or DEFAULT_TIMEOUT
        args = self._build_args(context) + [f"--timeout={timeout}s"]
        if system_prompt:
            args += [f"--system-prompt={system_prompt}"]
        prompt_file = (context or {}).get("prompt_file")
        if prompt_file:
            # The model reads the file itself; the prompt string is not sent.
            args += ["--prompt-by", "flag", f"Process the prompt in {prompt_file}"]
            stdin = b""
        else:
            args += ["--prompt-by", "stdin", "-"]
            stdin = prompt.encode("utf-8", "surrogatepass")
        with tempfile.TemporaryDirectory(prefix="aiwf-gemini-") as scratch:
            recording = Path(scratch, "recording")
            args.insert(-1, f"--record={recording}")
            code, stdout, stderr = await self._async_alhena(args, stdin, timeout + GRACE)
            self._log(recording, stderr)
        return self._read_answer(code, stdout, stderr)

    def _log(self, recording: Path, stderr: str) -> None:
        """What happened, for whoever reads the log."""
        for line in stderr.splitlines():
            logger.log(logging.WARNING if line.startswith("warning: ") else logging.DEBUG, "alhena: %s", line)
        try:
            outcome = json.loads((recording / "outcome.json").read_bytes())
        except (OSError, ValueError):
            return
        logger.info("Gemini CLI session %s, models %s", outcome["session_id"], ", ".join(outcome["models"]))
        if outcome["malformed"]["lines"]:
            logger.warning("Gemini CLI wrote %(lines)d malformed lines (%(bytes)d bytes)", outcome["malformed"])
        usage = {key: value for key, value in outcome["usage"].items() if key != "models"}
        logger.info("Gemini CLI ended with %s after %d ms: %s", outcome["status"], outcome["duration_ms"], usage)

    def _read_answer(self, code: int, stdout: bytes, stderr: str) -> ProviderResult:
        try:
            answer = json.loads(stdout)
        except ValueError:
            # `alhena` refused its arguments, or was killed: its own words say why.
            raise self._wrap_process_error(code, stderr) from None
        if "error" in answer:
            raise ProviderError(answer["error"])
        return ProviderResult(response=answer["response"], files=dict(answer["files"]))

    def _build_args(self, context: Mapping[str, Any] | None) -> list[str]:
        """The arguments of `alhena` for this configuration, without the prompt."""
        config = {key: value for key, value in self.config.items() if value is not None}
        args = ["run", "--as", "aiwf", "--trust", "--approval", config.get("approval_mode", "yolo")]
        if config.get("model"):
            args += [f"--model={config['model']}"]
        if config.get("sandbox"):
            args += ["--sandbox=on"]
        working_dir = self._working_dir(context)
        if working_dir:
            args += [f"--dir={working_dir}"]
        for directory in [*config.get("include_directories", []), *self._prompt_dir(context)]:
            args += [f"--include-dir={directory}"]
        for tool in config.get("allowed_tools", []):
            args += [f"--allow-tool={tool}"]
        return args

    def _working_dir(self, context: Mapping[str, Any] | None) -> str | None:
        directory = self.config.get("working_dir") or (context or {}).get("project_root")
        return str(directory) if directory else None

    def _prompt_dir(self, context: Mapping[str, Any] | None) -> list[str]:
        """The prompt file's directory, if the model could not read there otherwise."""
        prompt_file = (context or {}).get("prompt_file")
        if not prompt_file:
            return []
        base = Path(self._working_dir(context) or ".").resolve()
        parent = (base / str(prompt_file)).resolve().parent
        return [] if parent == base or base in parent.parents else [str(parent)]

    def _parse_ndjson_stream(self, stdout: bytes) -> tuple[str, dict[str, None]]:
        """Text and written files of a stream that Gemini CLI wrote. Malformed lines are skipped."""
        _, converted, stderr = _run(self._async_alhena(["parse", "--as", "aiwf", "-"], stdout))
        if not converted:
            raise ProviderError(f"alhena parse failed: {stderr.strip()}")
        answer = json.loads(converted)
        return answer["response"], dict(answer["files"])

    def _wrap_process_error(self, returncode: int, stderr: str) -> ProviderError:
        lower = stderr.lower()
        if "auth" in lower or "login" in lower:
            return ProviderError(f"Gemini CLI authentication error. Run: gemini auth login\n{stderr}")
        if returncode == 127:
            return ProviderError(NOT_FOUND)
        return ProviderError(f"Gemini CLI failed (exit {returncode}): {stderr}")

    def _validate_config(self) -> None:
        unknown = sorted(set(self.config) - set(self.get_metadata()["config_keys"]))
        if unknown:
            warnings.warn(f"Unknown GeminiCliProvider config keys ignored: {unknown}", UserWarning, stacklevel=3)
        timeout = self.config.get("timeout")
        if timeout is not None and timeout <= 0:
            raise ValueError("timeout must be > 0")
        approval_mode = self.config.get("approval_mode")
        if approval_mode is not None and approval_mode not in VALID_APPROVAL_MODES:
            raise ValueError(f"approval_mode must be one of {sorted(VALID_APPROVAL_MODES)}, got: {approval_mode!r}")
        for key in ("include_directories", "allowed_tools"):
            value = self.config.get(key)
            if value is not None and not isinstance(value, list):
                raise ValueError(f"{key} must be a list, got: {type(value).__name__}")

    # -- the process

    async def _async_alhena(
        self, args: list[str], stdin: bytes = b"", timeout: float | None = None
    ) -> tuple[int, bytes, str]:
        """Exit code, standard output and standard error of `alhena`."""
        process = await asyncio.create_subprocess_exec(
            _alhena(),
            *args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            stdout, stderr = await asyncio.wait_for(process.communicate(stdin), timeout)
        finally:
            if process.returncode is None:
                # Told to stop, `alhena` stops everything that it started.
                process.terminate()
                await process.wait()
        return process.returncode, stdout, stderr.decode("utf-8", "replace")


def _alhena() -> str:
    """The `alhena` program; the full path, because Windows needs its ending."""
    program = os.environ.get("ALHENA_BIN") or shutil.which("alhena")
    if not program:
        raise ProviderError("alhena not found. Put it on PATH, or say where it is by ALHENA_BIN.")
    return program


def _run(coroutine: Any) -> Any:
    """`asyncio.run`, also when a loop already runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    result: list[Any] = []

    def work() -> None:
        try:
            result.append((asyncio.run(coroutine), None))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that asked
            result.append((None, error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    value, error = result[0]
    if error is not None:
        raise error
    return value
