"""Asks Gemini CLI for a file and shows what came of it.

    python3 example.py "Write a haiku about rivers into haiku.txt"
"""

import sys

from alhena_aiwf import GeminiCliProvider, ProviderError


def main() -> int:
    prompt = sys.argv[1] if len(sys.argv) > 1 else "Write a haiku about rivers into haiku.txt"
    provider = GeminiCliProvider(approval_mode="auto_edit", timeout=300)
    try:
        provider.validate()
        result = provider.generate(prompt)
    except ProviderError as error:
        print(error, file=sys.stderr)
        return 1
    print(result.response)
    for path in result.files:
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
