"""Gemini CLI as a provider of CAO, the CLI Agent Orchestrator, through `alhena`.

Where this package is installed beside CAO, CAO knows the provider `gemini_cli`: see [hook][alhena_cao.hook].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .hook import NAME, register

if TYPE_CHECKING:
    from .provider import GeminiCliProvider, ProviderError

__all__ = ["NAME", "GeminiCliProvider", "ProviderError", "register"]


def __getattr__(name: str) -> Any:
    """The provider needs CAO, and every start of Python imports this module: it is loaded when it is asked for."""
    if name in ("GeminiCliProvider", "ProviderError"):
        from . import provider

        return getattr(provider, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
