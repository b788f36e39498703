"""As in the engine, which registers its providers when it is imported."""

from .gemini_cli_provider import GeminiCliProvider
from .provider_factory import ResponseProviderFactory

ResponseProviderFactory.register("gemini-cli", GeminiCliProvider)
