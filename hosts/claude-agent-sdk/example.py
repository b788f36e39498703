"""A conversation of two turns with Gemini, by an unmodified Claude Agent SDK.

CLAUDE_CLI is the path of a link to `alhena` under the name `claude`.
"""

import asyncio
import os

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    TextBlock,
)


async def can_use_tool(tool, arguments, context):
    if tool == "Write" and arguments["file_path"].endswith(".txt"):
        return PermissionResultAllow()
    return PermissionResultDeny(message=f"{tool} is not wanted here")


async def main():
    options = ClaudeAgentOptions(cli_path=os.environ["CLAUDE_CLI"], can_use_tool=can_use_tool)
    async with ClaudeSDKClient(options) as client:
        for prompt in ["Write a greeting to greeting.txt", "What did you write?"]:
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    for block in message.content:
                        if isinstance(block, TextBlock):
                            print(block.text)
                elif isinstance(message, ResultMessage):
                    print(f"{message.usage['output_tokens']} tokens, {message.total_cost_usd:.6f} USD")


asyncio.run(main())
