"""The adapter in the place of the engine's own."""

from alhena_aiwf import DEFAULT_TIMEOUT, FILE_WRITE_TOOLS, VALID_APPROVAL_MODES, GeminiCliAIProvider

__all__ = ["DEFAULT_TIMEOUT", "FILE_WRITE_TOOLS", "VALID_APPROVAL_MODES", "GeminiCliAIProvider"]
