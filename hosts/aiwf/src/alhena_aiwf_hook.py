"""Registers the provider when aiwf imports its own.

`alhena_aiwf.pth` runs [install][alhena_aiwf_hook.install] at every start of Python in the environment in which the package is
installed: aiwf registers its providers itself and has no entry point for others. Nothing is imported until aiwf is, and nothing on
the disk is changed. `ALHENA_AIWF=off` leaves aiwf alone, and so does uninstalling the package.
"""

import os
import sys
from types import ModuleType
from typing import Any

PROVIDERS = "aiwf.domain.providers"


def _register() -> None:
    try:
        # Not by the package itself, which may be the one that imports aiwf just now.
        from alhena_aiwf.engine import register
        from alhena_aiwf.provider import GeminiCliAIProvider

        register(GeminiCliAIProvider)
    except Exception as error:
        # No error here may break the import of aiwf itself.
        print(
            f"alhena-aiwf: the provider is not registered, so aiwf uses its own: {error!r}. Install releases of alhena-aiwf and aiwf "
            "that fit, or set ALHENA_AIWF=off to hide this message.",
            file=sys.stderr,
        )


class _Finder:
    """Finds the module as usual and registers the provider once it is loaded."""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != PROVIDERS or self._looking:
            return None
        from importlib.util import find_spec

        self._looking = True
        try:
            spec = find_spec(name)
        finally:
            self._looking = False
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            _register()

        setattr(spec.loader, "exec_module", exec_module)
        return spec


def install() -> None:
    """Registers the provider as soon as aiwf has imported its own; at once if it has."""
    if os.environ.get("ALHENA_AIWF") == "off" or any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    if PROVIDERS in sys.modules:
        _register()
