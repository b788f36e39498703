"""As in the engine: the configuration is given as keywords."""

from typing import Any

from .ai_provider import AIProvider


class AIProviderFactory:
    """Makes providers by name."""

    _registry: dict[str, type[AIProvider]] = {}

    @classmethod
    def register(cls, key: str, provider_class: type[AIProvider]) -> None:
        """Takes a provider by name."""
        cls._registry[key] = provider_class

    @classmethod
    def create(cls, provider_key: str, config: dict[str, Any] | None = None) -> AIProvider:
        """Makes one."""
        return cls._registry[provider_key](**(config or {}))
