"""As in the engine, which registers its own providers when it is imported."""

from .gemini_cli_provider import GeminiCliAIProvider
from .manual_provider import ManualAIProvider
from .provider_factory import AIProviderFactory

AIProviderFactory.register("manual", ManualAIProvider)
AIProviderFactory.register("gemini-cli", GeminiCliAIProvider)
