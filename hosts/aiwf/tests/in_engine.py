"""Run in a process of its own, with an engine on the path: prints `ok` when the adapter fits into it.

    python in_engine.py PROVIDER RESULT FACTORY
"""

import asyncio
import importlib
import os
import sys
from unittest.mock import AsyncMock, patch


def main(provider_name: str, result_module: str, result_name: str, factory_name: str) -> None:
    providers = importlib.import_module("aiwf.domain.providers")
    errors = importlib.import_module("aiwf.domain.errors")
    result_class = getattr(importlib.import_module(f"aiwf.domain.models.{result_module}"), result_name)
    adapter = importlib.import_module("alhena_aiwf")
    assert adapter.ProviderError is errors.ProviderError
    assert adapter.ProviderResult is result_class
    provider = getattr(providers, factory_name).create("gemini-cli", {"model": "m", "timeout": 10})
    assert type(provider).__name__ == provider_name, type(provider)
    assert provider.config == {"model": "m", "timeout": 10}

    # A missing `alhena`, and one that cannot be started, are the engine's errors, too.
    for missing in ("/nowhere/alhena", __file__):
        with patch.dict(os.environ, {"ALHENA_BIN": missing}):
            for call in (provider.validate, lambda: provider.generate("hello")):
                try:
                    call()
                except errors.ProviderError:
                    pass
                else:
                    raise AssertionError("nothing was raised")

    # What the engine's own tests do: a process that answers as the CLI does.
    process = AsyncMock(returncode=0)
    process.communicate = AsyncMock(return_value=(b'{"type":"message","role":"assistant","content":"Hello"}\n', b""))
    with patch("asyncio.create_subprocess_exec", AsyncMock(return_value=process)):
        result = provider.generate("hello")
        assert isinstance(result, result_class) and result.response == "Hello", result
        process.communicate.side_effect = asyncio.TimeoutError
        try:
            provider.generate("hello")
        except errors.ProviderError as error:
            assert "timed out" in str(error) and "10s" in str(error), error
        else:
            raise AssertionError("nothing was raised")
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
