"""The smallest MCP server there can be, for Python: one tool, no packages."""

import json
import platform
import sys

ADD = {
    "name": "add",
    "description": "Adds two numbers, in Python.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}


def initialize(params):
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "add.py", "version": platform.python_version()},
    }


def call(params):
    given = params["arguments"]
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


ANSWERS = {
    "initialize": initialize,
    "ping": lambda params: {},
    "tools/list": lambda params: {"tools": [ADD]},
    "tools/call": call,
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = ANSWERS.get(request["method"])
    if answer:
        outcome = {"result": answer(request.get("params") or {})}
    else:
        outcome = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
