"""Makes `gemini_cli` a provider of CAO, which has a closed list of them.

`alhena_cao.pth` runs [register][alhena_cao.hook.register] at every start of Python in the environment in which this package is
installed; it imports nothing of CAO. When CAO itself imports one of the modules below, the module gets its addition there and
then. Nothing on the disk is changed, and other providers go through unchanged. `ALHENA_CAO=off` leaves CAO alone, and so does
uninstalling the package.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "gemini_cli"
CAO = "cli_agent_orchestrator"


def _types(module: Any) -> None:
    """Requests and records are checked against this enumeration, and constants are made of it."""
    types = module.ProviderType
    if NAME in types._value2member_map_:
        return
    member = str.__new__(types, NAME)
    member._name_, member._value_ = "GEMINI_CLI", NAME
    member._sort_order_ = len(types._member_names_)
    types._member_names_.append(member._name_)
    types._member_map_[member._name_] = member
    types._value2member_map_[NAME] = member
    type.__setattr__(types, member._name_, member)


def _constants(module: Any) -> None:
    """Profiles and commands may name the provider."""
    if NAME not in module.PROVIDERS:
        module.PROVIDERS.append(NAME)


def _enforcement(module: Any) -> None:
    """Tools that a profile does not allow are refused by a policy of the CLI, in yolo mode, too."""
    module.PROVIDER_ENFORCEMENT[NAME] = module.NATIVE


def _mcp_mapping(module: Any) -> None:
    """MCP servers of plugins."""
    module.PROVIDER_TRANSPORTS[NAME] = module.PROVIDER_TRANSPORTS["claude_code"]
    module.PROVIDER_CWD_DELIVERY[NAME] = "native"


def _terminal_service(module: Any) -> None:
    """Skills are listed in the system prompt."""
    module.RUNTIME_SKILL_PROMPT_PROVIDERS.add(NAME)


def _launch(module: Any) -> None:
    """`cao launch` asks before it lets an agent loose on a directory."""
    module.PROVIDERS_REQUIRING_WORKSPACE_ACCESS.add(NAME)


def _manager(module: Any) -> None:
    """Both of these have a closed list inside."""
    manager = module.ProviderManager
    if getattr(manager, "knows_gemini_cli", False):
        return
    others_class, others_create = manager.provider_class.__func__, manager.create_provider

    def provider_class(cls: type, provider: str) -> Any:
        return _provider() if provider == NAME else others_class(cls, provider)

    def create_provider(
        self: Any,
        provider_type: str,
        terminal_id: str,
        tmux_session: str,
        tmux_window: str,
        agent_profile: str | None = None,
        allowed_tools: list[str] | None = None,
        skill_prompt: str | None = None,
        model: str | None = None,
        **others: Any,
    ) -> Any:
        ours = (terminal_id, tmux_session, tmux_window, agent_profile, allowed_tools, skill_prompt, model)
        if provider_type != NAME:
            return others_create(self, provider_type, *ours, **others)
        self._providers[terminal_id] = _provider()(*ours)
        return self._providers[terminal_id]

    manager.provider_class = classmethod(provider_class)
    manager.create_provider = create_provider
    manager.knows_gemini_cli = True


def _provider() -> Any:
    from .provider import GeminiCliProvider

    return GeminiCliProvider


ADDITIONS: dict[str, Callable[[Any], None]] = {
    f"{CAO}.models.provider": _types,
    f"{CAO}.constants": _constants,
    f"{CAO}.utils.enforcement": _enforcement,
    f"{CAO}.agent_plugins.mcp_mapping": _mcp_mapping,
    f"{CAO}.services.terminal_service": _terminal_service,
    f"{CAO}.cli.commands.launch": _launch,
    f"{CAO}.providers.manager": _manager,
}


def _add(module: ModuleType) -> None:
    try:
        ADDITIONS[module.__name__](module)
    except (AttributeError, KeyError, TypeError) as error:
        # CAO must go on without it; whoever asks for the provider then hears that it is not known.
        print(f"alhena-cao does not fit this release of CAO ({module.__name__}: {error})", file=sys.stderr)


class _Finder:
    """Finds the modules above as everybody does, and has them added to once they are loaded."""

    def __init__(self) -> None:
        self._looking: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in ADDITIONS or name in self._looking:
            return None
        from importlib.util import find_spec

        self._looking.add(name)
        try:
            spec = find_spec(name)
        finally:
            self._looking.discard(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _add(module)

        setattr(spec.loader, "exec_module", exec_module)
        return spec


def register() -> None:
    """Adds the provider to what of CAO is loaded, and to what will be."""
    if os.environ.get("ALHENA_CAO") == "off" or any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name in ADDITIONS:
        module = sys.modules.get(name)
        if module is not None:
            _add(module)
