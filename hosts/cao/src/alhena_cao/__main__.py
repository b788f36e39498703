"""`alhena-cao`: says whether CAO knows the provider, and runs CAO's programs with it where no `.pth` file is read."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import alhena
from alhena_cao.hook import CAO, DISTRIBUTION, NAME, SUPPORTED, register

PROGRAMS = {"server": ("api.main", "main"), "cli": ("cli.main", "cli"), "mcp-server": ("mcp_server.server", "main")}
USAGE = "usage: alhena-cao check | server ARGS... | cli ARGS... | mcp-server ARGS..."

NO_CAO = f"CAO is not installed for {sys.executable}: install alhena-cao where CAO is"


def check() -> int:
    """What is there of all that is needed; 0 when nothing is missing."""
    if find_spec(CAO) is None:
        print(NO_CAO)
        return 1
    # An unsupported release of CAO has said why on stderr by now.
    known = import_module(f"{CAO}.constants").PROVIDERS
    print(f"CAO {'knows' if NAME in known else 'does not know'} the provider {NAME}; supported is {DISTRIBUTION}{SUPPORTED}")
    try:
        print(f"alhena: {alhena.find_binary()}")
        found = alhena.detect()
    except alhena.AlhenaError as error:
        print(error)
        return 1
    print(f"Gemini CLI: {found.path} ({found.version})" if found else "Gemini CLI was not found: `alhena install` fetches one")
    return 0 if NAME in known and found else 1


def main() -> None:
    """Runs a command."""
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    if command == "check":
        sys.exit(check())
    if command in ("-h", "--help"):
        print(USAGE)
        return
    if command not in PROGRAMS:
        sys.exit(USAGE)
    if find_spec(CAO) is None:
        sys.exit(NO_CAO)
    register()
    module, function = PROGRAMS[command]
    sys.argv = [f"cao-{command}", *sys.argv[2:]]
    getattr(import_module(f"{CAO}.{module}"), function)()


if __name__ == "__main__":
    main()
