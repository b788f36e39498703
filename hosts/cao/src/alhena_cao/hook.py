"""Makes `gemini_cli` a provider of CAO, which has a closed list of providers.

`alhena_cao.pth` runs [register][alhena_cao.hook.register] at every start of Python in the environment where this package is
installed; it imports nothing of CAO. When CAO itself imports one of the modules below, the addition is made there. It is all or
nothing: an unsupported release of CAO is left as it is, and a part that cannot be added takes the others back. Nothing on the
disk is changed, and other providers are not affected. `ALHENA_CAO=off` leaves CAO alone, and so does uninstalling the package.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "gemini_cli"
CAO = "cli_agent_orchestrator"
DISTRIBUTION = "cli-agent-orchestrator"
# The supported releases of CAO: the first one, and the first one after them. pyproject.toml has the same.
OLDEST, BEYOND = (2, 5, 4), (2, 6)
SUPPORTED = f">={'.'.join(map(str, OLDEST))},<{'.'.join(map(str, BEYOND))}"


# The steps that take an addition back, in the order of the additions. An addition appends one as soon as it has changed
# something, so that a failure halfway leaves nothing behind.
Undo = list["Callable[[], object]"]


def _put(table: Any, key: str, value: Any, undo: Undo) -> None:
    table[key] = value
    undo.append(lambda: table.pop(key))


def _include(names: Any, undo: Undo) -> None:
    names.add(NAME)
    undo.append(lambda: names.discard(NAME))


def _replace(owner: Any, name: str, value: Any, undo: Undo) -> None:
    before = owner.__dict__[name]
    setattr(owner, name, value)
    undo.append(lambda: setattr(owner, name, before))


def _types(module: Any, undo: Undo) -> None:
    """Requests and records are checked against this enumeration, and constants are made of it."""
    types = module.ProviderType
    if NAME in types._value2member_map_:
        raise KeyError(f"CAO has a provider {NAME} of its own")
    member = str.__new__(types, NAME)
    member._name_, member._value_ = "GEMINI_CLI", NAME
    member._sort_order_ = len(types._member_names_)
    types._member_names_.append(member._name_)
    undo.append(lambda: types._member_names_.remove(member._name_))
    _put(types._member_map_, member._name_, member, undo)
    _put(types._value2member_map_, NAME, member, undo)
    type.__setattr__(types, member._name_, member)
    undo.append(lambda: type.__delattr__(types, member._name_))


def _constants(module: Any, undo: Undo) -> None:
    """Profiles and commands may name the provider. The list is made of the enumeration."""
    if NAME not in module.PROVIDERS:
        module.PROVIDERS.append(NAME)
    undo.append(lambda: module.PROVIDERS.remove(NAME))


def _enforcement(module: Any, undo: Undo) -> None:
    """Tools that a profile does not allow are refused by a policy of the CLI, in yolo mode, too."""
    _put(module.PROVIDER_ENFORCEMENT, NAME, module.NATIVE, undo)


def _mcp_mapping(module: Any, undo: Undo) -> None:
    """MCP servers of plugins."""
    _put(module.PROVIDER_TRANSPORTS, NAME, module.PROVIDER_TRANSPORTS["claude_code"], undo)
    _put(module.PROVIDER_CWD_DELIVERY, NAME, "native", undo)


def _terminal_service(module: Any, undo: Undo) -> None:
    """Skills are listed in the system prompt, and a turn that failed is shown as an error (D-06).

    CAO types nothing into a terminal whose status is an error, because it takes its process for ended. Here the CLI still runs
    and takes the next message. So CAO itself sees a turn that is over, and those who ask CAO for the status see the error.
    """
    # Looked up now, so that a release without one of them is refused instead of failing at the first status.
    reported, providers = module.reported_status, module.provider_manager._providers
    completed, error = module.TerminalStatus.COMPLETED, module.TerminalStatus.ERROR

    def reported_status(terminal_id: str, status: Any) -> Any:
        shown = reported(terminal_id, status)
        failed = getattr(providers.get(terminal_id), "turn_failed", False) is True
        return error if shown is completed and failed else shown

    _replace(module, "reported_status", reported_status, undo)
    _include(module.RUNTIME_SKILL_PROMPT_PROVIDERS, undo)


def _launch(module: Any, undo: Undo) -> None:
    """`cao launch` asks before it lets an agent loose on a directory."""
    _include(module.PROVIDERS_REQUIRING_WORKSPACE_ACCESS, undo)


def _manager(module: Any, undo: Undo) -> None:
    """Both of these have a closed list inside."""
    manager = module.ProviderManager
    by_name, create = manager.__dict__["provider_class"], manager.create_provider

    def provider_class(cls: type, provider: str) -> Any:
        return _provider() if provider == NAME else by_name.__func__(cls, provider)

    def create_provider(self: Any, provider_type: str, *arguments: Any, **named: Any) -> Any:
        if provider_type != NAME:
            return create(self, provider_type, *arguments, **named)
        from inspect import signature

        wanted = signature(create).bind(self, provider_type, *arguments, **named).arguments
        if wanted.get("resume_session_id"):
            raise ValueError(
                f"The provider {NAME} does not support resume_session_id: start a new session without it "
                "(CAO resumes sessions of the provider claude_code only)"
            )
        terminal_id = wanted["terminal_id"]
        self._providers[terminal_id] = _provider()(
            terminal_id,
            wanted["tmux_session"],
            wanted["tmux_window"],
            *map(wanted.get, ("agent_profile", "allowed_tools", "skill_prompt", "model")),
        )
        return self._providers[terminal_id]

    _replace(manager, "provider_class", classmethod(provider_class), undo)
    _replace(manager, "create_provider", create_provider, undo)


def _provider() -> Any:
    from .provider import GeminiCliProvider

    return GeminiCliProvider


class Addition(NamedTuple):
    """What is added to a module of CAO."""

    # Makes it, and notes how to take it back.
    add: Callable[[Any, Undo], None]
    # The names that the module has to define for it.
    needs: tuple[str, ...]


ADDITIONS = {
    f"{CAO}.models.provider": Addition(_types, ("ProviderType",)),
    f"{CAO}.constants": Addition(_constants, ("PROVIDERS",)),
    f"{CAO}.utils.enforcement": Addition(_enforcement, ("PROVIDER_ENFORCEMENT", "NATIVE")),
    f"{CAO}.agent_plugins.mcp_mapping": Addition(_mcp_mapping, ("PROVIDER_TRANSPORTS", "PROVIDER_CWD_DELIVERY")),
    f"{CAO}.services.terminal_service": Addition(
        _terminal_service, ("RUNTIME_SKILL_PROMPT_PROVIDERS", "reported_status")
    ),
    f"{CAO}.cli.commands.launch": Addition(_launch, ("PROVIDERS_REQUIRING_WORKSPACE_ACCESS",)),
    f"{CAO}.providers.manager": Addition(_manager, ("provider_class", "create_provider")),
}


def unsupported() -> str | None:
    """Returns why this CAO cannot have the provider, or None if it can. No module of CAO is imported for it."""
    # Imported late: every start of Python imports this module.
    import re
    from importlib.metadata import PackageNotFoundError, version
    from pathlib import Path

    try:
        found = version(DISTRIBUTION)
    except PackageNotFoundError:
        return f"the version of CAO is unknown, because no package {DISTRIBUTION} is installed"
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:3])
    if not OLDEST <= numbers < BEYOND:
        return f"CAO {found} is installed"
    package = Path(str(sys.modules[CAO].__file__)).parent
    for name, addition in ADDITIONS.items():
        file = package.joinpath(*name.split(".")[1:]).with_suffix(".py")
        try:
            source = file.read_text(encoding="utf-8")
        except OSError:
            return f"CAO {found} has no {name}"
        for needed in addition.needs:
            if not re.search(rf"^ *(class |def )?{needed}\b", source, re.MULTILINE):
                return f"CAO {found} has no {needed} in {name}"
    return None


class _Finder:
    """Finds the modules above as Python does, and makes the additions once they are loaded."""

    def __init__(self) -> None:
        self._looking: set[str] = set()
        self._undo: dict[str, Undo] = {}
        # Whether CAO can have the provider; not known before its first module is loaded.
        self._fits: bool | None = None

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
            self.add(module)

        setattr(spec.loader, "exec_module", exec_module)
        return spec

    def add(self, module: ModuleType) -> None:
        """Makes the addition to a module, or takes back those that were made."""
        if module.__name__ in self._undo:
            return
        # No error here may break the import of CAO itself.
        try:
            if self._fits is None:
                self._refuse(unsupported())
            if self._fits:
                ADDITIONS[module.__name__].add(module, self._undo.setdefault(module.__name__, []))
        except Exception as error:
            self._refuse(f"{module.__name__} is not as expected: {error!r}")

    def _refuse(self, why: str | None) -> None:
        self._fits = why is None
        if why is None:
            return
        for steps in reversed(self._undo.values()):
            for step in reversed(steps):
                step()
        self._undo.clear()
        print(
            f"alhena-cao: the provider {NAME} is not available: {why}. Supported is {DISTRIBUTION}{SUPPORTED}: install such a "
            "release or another alhena-cao, or set ALHENA_CAO=off to hide this message.",
            file=sys.stderr,
        )


def register() -> None:
    """Adds the provider to the modules of CAO that are loaded, and to the others when they are."""
    if os.environ.get("ALHENA_CAO") == "off" or any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    for name in ADDITIONS:
        module = sys.modules.get(name)
        if module is not None:
            finder.add(module)
