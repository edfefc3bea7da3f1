"""A small MCP server for tests, without dependencies; its first word says how it behaves."""

import json
import os
import sys
import time

how = sys.argv[1] if len(sys.argv) > 1 else ""
MODERN = "2026-07-28"


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def tools():
    names = [
        "echo",
        "add",
        "fail",
        "picture",
        "slow",
        "exit",
        "env",
        "write",
        "album",
        "count",
        "long",
        "ask",
        "wait",
        "nan",
        "tell",
        "question",
    ]
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def called(number, name, args, meta):
    if name == "echo":
        return text(args.get("text", ""))
    if name == "add":
        return text("see the structure", structuredContent={"sum": args["a"] + args["b"]})
    if name == "fail":
        return text("it is broken: " + args.get("text", ""), isError=True)
    if name == "picture":
        return {"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}, {"type": "text", "text": "一"}]}
    if name == "album":
        picture = {"type": "image", "data": args["data"], "mimeType": "image/png"}
        file = {"type": "resource", "resource": {"uri": "file:///a.bin", "mimeType": "application/x", "blob": "AAEC"}}
        link = {"type": "resource_link", "uri": "file:///b.txt", "name": "b"}
        parts = [{"type": "text", "text": "three"}, picture, file, link]
        return {"content": parts} | ({"structuredContent": {"n": 3}} if args.get("structured") else {})
    if name == "slow":
        for step in range(3):
            send(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": meta.get("progressToken"), "progress": step + 1, "total": 3},
                }
            )
            time.sleep(0.02)
        print("half way", file=sys.stderr, flush=True)
        return text("done")
    if name == "exit":
        os._exit(3)
    if name == "env":
        return text(json.dumps({"key": os.environ.get("KEY"), "meta": meta}, sort_keys=True))
    if name == "write":
        with open(args["path"], "w") as stream:
            stream.write("x")
        return text("written")
    if name == "count":
        called.times += 1
        return text(str(called.times))
    if name == "nan":
        return text("see the structure", structuredContent={"rates": [float("nan")]})
    if name == "long":
        return text("x" * args["size"])
    if name == "ask":
        send({"id": "own-1", "method": "sampling/createMessage", "params": {}})
        return text("asked, and was told: " + sys.stdin.readline().strip())
    if name == "tell":
        told = {"progressToken": meta.get("progressToken"), "progress": 1, "message": "with " + args["key"]}
        send({"method": "notifications/progress", "params": told})
        time.sleep(0.5)
        return text("told")
    if name == "wait":
        time.sleep(10**6)
    if name == "question":
        return questioned(args)
    return None


def questioned(args):
    """Asks what it was told to ask, one after the other, and gives what it heard."""
    raw = args.get("raw")
    if raw == "deep":
        nested = b'{"properties":' * 100_000 + b"{}" + b"}" * 100_000
        sys.stdout.buffer.write(
            b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"x","requestedSchema":'
            + nested
            + b"}}\n"
        )
        sys.stdout.flush()
    elif raw == "big":
        send({"id": "q", "method": "elicitation/create", "params": {"message": "x" * 10_000_000}})
    elif raw == "flood":
        for number in range(1_000):
            send({"id": number, "method": "elicitation/create", "params": args["questions"][0]})
    elif raw == "takes back":
        send({"id": "q", "method": "elicitation/create", "params": args["questions"][0]})
        time.sleep(0.5)
        send({"method": "notifications/cancelled", "params": {"requestId": "q"}})
        time.sleep(0.5)
        return text("taken back")
    if raw:
        time.sleep(10**6)
    heard = []
    for number, question in enumerate(args["questions"]):
        send({"id": f"q-{number}", "method": "elicitation/create", "params": question})
        told = json.loads(sys.stdin.readline())
        heard.append(told.get("result", told.get("error", told.get("method"))))
    return text(json.dumps({"heard": heard, "able": main.able}))


def input_required(params, meta):
    """The same in the stateless revision: the state says how many were answered."""
    args, state = params["arguments"], params.get("requestState")
    if "result" in args:
        return args["result"]
    heard = json.loads(state) if state else []
    if state:
        heard.append(params["inputResponses"]["one"])
    if len(heard) == len(args["questions"]):
        return text(json.dumps({"heard": heard, "able": meta["io.modelcontextprotocol/clientCapabilities"]}))
    asked = {"method": "elicitation/create", "params": args["questions"][len(heard)]}
    return {"resultType": "input_required", "inputRequests": {"one": asked}, "requestState": json.dumps(heard)}


called.times = 0


BROKEN = {
    "bytes": lambda number: (
        b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}' % number
    ),
    "bytes behind": lambda number: b'{"jsonrpc":"2.0","result":{"text":"\xff"},"id":%d}' % number,
    "deep": lambda number: b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (number, b"[" * 100_000 + b"]" * 100_000),
    "json": lambda number: b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}}' % number,
    "no id": lambda _number: b'{"jsonrpc":"2.0","result":{"content":[}}',
    "text id": lambda number: b'{"jsonrpc":"2.0","id":"%d","result":{}}' % number,
    "other id": lambda number: b'{"jsonrpc":"2.0","id":%d,"result":{}}' % (number + 1000),
    "null id": lambda _number: b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
    "neither": lambda number: b'{"jsonrpc":"2.0","id":%d}' % number,
    "list": lambda number: b'{"jsonrpc":"2.0","id":%d,"result":[1]}' % number,
    "error": lambda number: b'{"jsonrpc":"2.0","id":%d,"error":"bad"}' % number,
}


def main():
    if how == "dies":
        print("no key was given", file=sys.stderr)
        sys.exit(2)
    if how == "torn":
        for piece in ("Traceback:\n", "  ", "File one\n", "    ", "import x\n", "Error", ": ", "no x \u4e00"):
            print(piece, end="", file=sys.stderr, flush=True)
            time.sleep(0.02)
        sys.exit(2)
    if how == "mute":
        time.sleep(10**6)
    if how.endswith("slow"):
        time.sleep(0.7)
    if how == "chatty":
        print("Starting the server …", flush=True)
        print("{not json", flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        meta = params.get("_meta") or {}
        if number is None:
            continue
        if method == "initialize":
            main.able = params.get("capabilities")
            if how in ("modern", "modern-slow"):
                send(
                    {"id": number, "error": {"code": -32022, "message": "unsupported", "data": {"supported": [MODERN]}}}
                )
            elif how.startswith("modern-only"):
                send({"id": number, "error": {"code": -32601, "message": "no such method"}})
            elif how == "old":
                send({"id": number, "result": {"protocolVersion": "1999-01-01", "capabilities": {}}})
            elif how == "nonsense":
                send({"id": number, "result": ["what"]})
            else:
                send(
                    {
                        "id": number,
                        "result": {
                            "protocolVersion": "2025-06-18",
                            "capabilities": {"tools": {}},
                            "serverInfo": {"name": "test"},
                        },
                    }
                )
        elif method == "server/discover" and how == "ignores":
            continue
        elif method == "server/discover" and how.startswith("modern"):
            send({"id": number, "result": {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "_meta": {}}})
        elif method == "tools/list":
            listed = tools()
            at = int(params.get("cursor") or 0)
            after = {"nextCursor": str(at + 5)} if at + 5 < len(listed) else {}
            send({"id": number, "result": {"tools": listed[at : at + 5], **after}})
        elif method == "tools/call":
            if how.startswith("modern") and meta.get("io.modelcontextprotocol/protocolVersion") != MODERN:
                send({"id": number, "error": {"code": -32600, "message": "no version"}})
                continue
            if how.startswith("modern") and params["name"] == "question":
                send({"id": number, "result": input_required(params, meta)})
                continue
            result = called(number, params["name"], params.get("arguments") or {}, meta)
            if how in BROKEN and params["name"] == "echo":
                sys.stdout.buffer.write(BROKEN[how](number) + b"\n")
                sys.stdout.flush()
                continue
            if how == "twice":
                send({"id": number, "result": result})
                send({"id": number + 1000, "result": text("of no one")})
            send({"id": number, "result": result})
        else:
            send({"id": number, "error": {"code": -32601, "message": "no such method"}})


main()
