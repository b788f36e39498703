"""As in the engine."""


class ProviderError(Exception):
    """A provider failed."""
