"""Asks Gemini CLI for a file, shows what it does meanwhile, and what came of it.

    python haiku.py "Write a haiku about rivers into haiku.txt"
"""

import asyncio
import sys

from alhena import AlhenaError, AssistantMessage, Options, ResultMessage, ToolUseBlock, query


async def main() -> int:
    prompt = sys.argv[1] if len(sys.argv) > 1 else "Write a haiku about rivers into haiku.txt"
    try:
        async for message in query(prompt, Options(approval="auto-edit", trust=True, timeout=300)):
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, ToolUseBlock):
                        print(f"- {block.name}")
            elif isinstance(message, ResultMessage):
                print(message.result)
                for file in message.files:
                    print(f"{file.change} {file.path}")
    except AlhenaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
