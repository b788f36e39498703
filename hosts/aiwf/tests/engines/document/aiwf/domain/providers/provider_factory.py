"""As in the engine: the configuration is given as keywords."""

from typing import Any

from .response_provider import ResponseProvider


class ResponseProviderFactory:
    """Makes providers by name."""

    _registry: dict[str, type[ResponseProvider]] = {}

    @classmethod
    def register(cls, key: str, provider_class: type[ResponseProvider]) -> None:
        """Takes a provider by name."""
        cls._registry[key] = provider_class

    @classmethod
    def create(cls, provider_key: str, config: dict[str, Any] | None = None) -> ResponseProvider:
        """Makes one."""
        return cls._registry[provider_key](**(config or {}))
