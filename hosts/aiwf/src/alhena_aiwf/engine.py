"""The engine's own classes: as its document names them, or as its release 2.0 does.

Where the engine is installed, its classes are used, so that it recognises what a provider raises and returns; an engine that
has neither set of names is an ImportError. Only where there is no engine at all the provider uses classes of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

DOMAIN = "aiwf.domain"
# Module and class of a result and of the base, newest first.
NAMES = (
    ("models.ai_provider_result", "AIProviderResult", "providers.ai_provider", "AIProvider"),
    ("models.provider_result", "ProviderResult", "providers.response_provider", "ResponseProvider"),
)


class _OwnError(Exception):
    """A provider could not do what it was asked."""


@dataclass
class _OwnResult:
    """What a provider answers: a text, and files, None for each that it wrote itself."""

    response: str | None = None
    files: dict[str, str | None] = field(default_factory=dict)


class _OwnProvider:
    """The base of all providers."""


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _find() -> tuple[Any, Any, Any]:
    if not _is_there(DOMAIN):
        return _OwnError, _OwnResult, _OwnProvider
    error = import_module(f"{DOMAIN}.errors").ProviderError
    for result_module, result, base_module, base in NAMES:
        if _is_there(f"{DOMAIN}.{result_module}"):
            return (
                error,
                getattr(import_module(f"{DOMAIN}.{result_module}"), result),
                getattr(import_module(f"{DOMAIN}.{base_module}"), base),
            )
    raise ImportError("this aiwf has neither AIProviderResult nor ProviderResult; alhena-aiwf knows its releases 1 and 2")


if TYPE_CHECKING:
    ProviderError = _OwnError
    ProviderResult = _OwnResult
    ResponseProvider = _OwnProvider
else:
    ProviderError, ProviderResult, ResponseProvider = _find()

# As 2.0 names them.
AIProviderResult = ProviderResult
AIProvider = ResponseProvider


def register(provider: type[ResponseProvider], key: str = "gemini-cli") -> None:
    """Puts a provider into the engine's factory, in the place of the engine's own."""
    module = import_module(f"{DOMAIN}.providers.provider_factory")
    for name in ("AIProviderFactory", "ResponseProviderFactory", "ProviderFactory"):
        factory = getattr(module, name, None)
        if factory is not None:
            factory.register(key, provider)
            return
    raise ImportError("this aiwf has no factory of providers that alhena-aiwf knows")
