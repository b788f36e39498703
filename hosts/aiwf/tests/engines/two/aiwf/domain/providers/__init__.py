"""As in the engine, which registers its providers when it is imported."""

from .gemini_cli_provider import GeminiCliAIProvider
from .provider_factory import AIProviderFactory

AIProviderFactory.register("gemini-cli", GeminiCliAIProvider)
