"""Drives the real SDK through one scene, and prints what it saw as lines of JSON."""

import asyncio
import dataclasses
import json
import os
import sys

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    StreamEvent,
    create_sdk_mcp_server,
    query,
    tool,
)


def show(kind, **what):
    print(json.dumps({"kind": kind, **what}), flush=True)


def see(message):
    show(type(message).__name__, **dataclasses.asdict(message))


def options(**more):
    return ClaudeAgentOptions(cli_path=os.environ["CLAUDE_CLI"], **more)


async def whole(client, prompt):
    await client.query(prompt)
    async for message in client.receive_response():
        see(message)


async def one():
    async for message in query(prompt="Say hello", options=options(model="gemini-2.5-flash")):
        see(message)


async def failing():
    async for message in query(prompt="Fail", options=options(model="gemini-2.5-flash")):
        see(message)


async def two_turns():
    async with ClaudeSDKClient(options(model="gemini-2.5-flash")) as client:
        await whole(client, "Say hello")
        await client.set_model("gemini-2.5-pro")
        await whole(client, "Say it again")
        show("mcp", **await client.get_mcp_status())


async def asked(answer, prompt="Write the note"):
    async def can_use_tool(name, arguments, context):
        show("asked", tool=name, input=arguments, id=context.tool_use_id)
        return answer(arguments)

    async with ClaudeSDKClient(options(can_use_tool=can_use_tool)) as client:
        await whole(client, prompt)


async def allow():
    await asked(lambda _: PermissionResultAllow())


async def deny():
    await asked(lambda _: PermissionResultDeny(message="Not today"))


async def change():
    await asked(lambda arguments: PermissionResultAllow(updated_input={**arguments, "content": "other"}))


async def edit():
    await asked(lambda _: PermissionResultAllow(), "Change the kept file")


async def edits():
    async with ClaudeSDKClient(options()) as client:
        await whole(client, "Write the note")
        await client.set_permission_mode("acceptEdits")
        await whole(client, "Write the note")


async def interrupt():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("Slow")
        async for message in client.receive_response():
            see(message)
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                await client.interrupt()
        await whole(client, "Say hello")


async def hooks():
    async def hook(input, tool_use_id, context):
        show("hook", event=input["hook_event_name"], tool=input.get("tool_name"), input=input)
        event = input["hook_event_name"]
        if event == "UserPromptSubmit":
            return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "The note is blue."}}
        if event == "PreToolUse" and input["tool_name"] == "Bash":
            decision = {"permissionDecision": "deny", "permissionDecisionReason": "No shells"}
            return {"hookSpecificOutput": {"hookEventName": event, **decision}}
        if event == "PreToolUse":
            return {"hookSpecificOutput": {"hookEventName": event, "permissionDecision": "allow"}}
        if event == "Stop" and not input["stop_hook_active"]:
            return {"decision": "block", "reason": "Say hello"}
        return {}

    matchers = [HookMatcher(hooks=[hook])]
    events = ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop"]
    async with ClaudeSDKClient(options(hooks={event: matchers for event in events})) as client:
        await whole(client, "Read the note and write and run")


async def limits():
    session = None
    for prompt, more in [
        ("Say hello", {"system_prompt": "You are a pirate.", "max_budget_usd": 0.5}),
        ("Say it again", {"resume": True}),
        ("Write the note", {"permission_mode": "acceptEdits", "max_budget_usd": 0.000001}),
        ("Write the note", {"permission_mode": "acceptEdits", "max_turns": 1}),
    ]:
        if "resume" in more:
            more["resume"] = session
        try:
            async for message in query(prompt=prompt, options=options(model="gemini-2.5-flash", **more)):
                see(message)
                session = getattr(message, "session_id", session)
        except Exception as error:
            show("error", text=str(error))


async def values():
    for kind in ["integer", "boolean"]:
        schema = {"type": "object", "properties": {"n": {"type": kind}}, "required": ["n"]}
        more = {"output_format": {"type": "json_schema", "schema": schema}}
        try:
            async for message in query(prompt="Count", options=options(model="gemini-2.5-flash", **more)):
                see(message)
        except Exception as error:
            show("error", text=str(error))


async def impossible():
    @tool("add", "adds", {"a": float})
    async def add(arguments):
        return {"content": []}

    server = create_sdk_mcp_server("calc", tools=[add])
    for more in [
        {"mcp_servers": {"calc": server}},
        {"hooks": {"PreCompact": [HookMatcher(hooks=[add])]}},
        {"output_format": {"type": "json_schema", "schema": {"type": "strong"}}},
        {"permission_mode": "auto"},
    ]:
        try:
            async for message in query(prompt="Say hello", options=options(**more)):
                see(message)
        except Exception as error:
            show("error", text=str(error))


try:
    asyncio.run(globals()[sys.argv[1]]())
except Exception as error:
    show("raised", type=type(error).__name__, text=str(error))
