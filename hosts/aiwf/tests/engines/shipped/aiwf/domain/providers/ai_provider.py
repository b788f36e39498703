"""As in the engine: abstract, so that what is missing in a provider is an error."""

from abc import ABC, abstractmethod
from typing import Any


class AIProvider(ABC):
    """The base of all providers."""

    @classmethod
    def get_metadata(cls) -> dict[str, Any]:
        """What the provider is."""
        return {"name": "unknown"}

    @abstractmethod
    def validate(self) -> None:
        """Raises ProviderError unless it can be used."""

    @abstractmethod
    def generate(
        self,
        prompt: str,
        context: dict[str, Any] | None = None,
        system_prompt: str | None = None,
        connection_timeout: int | None = None,
        response_timeout: int | None = None,
    ) -> Any:
        """Answers a prompt."""
