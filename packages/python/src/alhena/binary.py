"""Where the program `alhena` is."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from .errors import BinaryNotFoundError, UnsupportedPlatformError

NAME = "alhena"


def find_binary() -> str:
    """The program `alhena`: the one that ALHENA_BIN names, else the package's own, else the one on PATH.

    Never one that happens to be in the working directory: relative entries of PATH are left out.
    """
    named = os.environ.get("ALHENA_BIN")
    if named:
        path = Path(named)
        if not path.is_absolute():
            raise BinaryNotFoundError(f"ALHENA_BIN is no absolute path: {named}")
        if not _is_program(path):
            raise BinaryNotFoundError(f"ALHENA_BIN names no program: {named}")
        return str(path)
    for directory in [*_own_directories(), *_path_directories()]:
        program = directory / NAME
        if _is_program(program):
            return str(program)
    if sys.platform == "win32":
        raise UnsupportedPlatformError("alhena does not run on Windows itself", "Run Python in WSL, where it is Linux.")
    raise BinaryNotFoundError("alhena not found: neither in the package nor on PATH")


def _own_directories() -> Iterator[Path]:
    """Where an installer puts the programs of this package."""
    yield Path(sysconfig.get_path("scripts"))
    package = Path(__file__).parent.parent
    # `pip install --target` and `--prefix`
    yield package / "bin"
    if package.parent.parent.name == "lib":
        yield package.parents[2] / "bin"
    if sys.platform != "win32":
        yield Path(sysconfig.get_path("scripts", scheme="posix_user"))


def _path_directories() -> Iterator[Path]:
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        directory = Path(entry)
        if directory.is_absolute():
            yield directory


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
