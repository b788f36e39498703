"""As in the engine, which has it as a model of pydantic."""

from dataclasses import dataclass, field


@dataclass
class AIProviderResult:
    """What a provider answers."""

    files: dict[str, str | None] = field(default_factory=dict)
    response: str | None = None
