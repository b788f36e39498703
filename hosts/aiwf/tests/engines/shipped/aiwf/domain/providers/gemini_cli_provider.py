"""The engine's own provider, which the adapter replaces."""

from typing import Any

from .ai_provider import AIProvider


class GeminiCliAIProvider(AIProvider):
    """It does nothing here."""

    def validate(self) -> None:
        """It is there."""

    def generate(self, prompt: str, *others: Any, **more: Any) -> Any:
        """Answers with nothing."""
