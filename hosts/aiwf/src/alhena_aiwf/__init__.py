"""Gemini CLI as a provider of the workflow engine aiwf, through `alhena`.

The surface is that of the engine's own provider: the same constructor, `validate`, `generate`, `get_metadata`, the same
constants and the same texts in the errors. Both of its names are here: `GeminiCliProvider`, and `GeminiCliAIProvider` as 2.0
calls it.
"""

import contextlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

if not TYPE_CHECKING:
    # The engine's own module may take the provider from here. The engine is loaded first, then, and gets it before this is
    # done; what is wrong with an engine is said below.
    def __getattr__(name: str) -> Any:
        return getattr(import_module(".provider", __name__), name)

    with contextlib.suppress(ModuleNotFoundError):
        import_module("aiwf.domain.providers")
    del __getattr__


from . import engine
from .engine import AIProvider, AIProviderResult, ProviderError, ProviderResult, ResponseProvider
from .provider import (
    DEFAULT_TIMEOUT,
    FILE_WRITE_TOOLS,
    NOT_FOUND,
    VALID_APPROVAL_MODES,
    GeminiCliAIProvider,
    GeminiCliProvider,
)

__all__ = [
    "AIProvider",
    "AIProviderResult",
    "DEFAULT_TIMEOUT",
    "FILE_WRITE_TOOLS",
    "GeminiCliAIProvider",
    "GeminiCliProvider",
    "NOT_FOUND",
    "ProviderError",
    "ProviderResult",
    "ResponseProvider",
    "VALID_APPROVAL_MODES",
    "register",
]


def register(key: str = "gemini-cli") -> None:
    """Makes the engine's factory give this provider; call it once, before the engine makes its own."""
    engine.register(GeminiCliAIProvider, key)
