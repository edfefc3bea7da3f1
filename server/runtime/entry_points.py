"""Calling one function of a script instead of running it as a program (``handler.entryPoint``, seed 003 §2.2.2).

A boot program of the script's own language reads the arguments, calls the function and prints its result as JSON. What the
script prints by itself goes to standard error, so that it cannot break the result. Python functions get keyword arguments,
JavaScript functions one object; coroutines and promises are awaited. Must not know the sandbox.
"""

from __future__ import annotations

_PYTHON = """\
import asyncio, importlib.util, inspect, json, os, sys
path, name = sys.argv[1:3]
out = sys.stdout
sys.stdout = sys.stderr
sys.argv[:] = [path]
sys.path[0] = os.path.dirname(path)
spec = importlib.util.spec_from_file_location("tool", path)
module = importlib.util.module_from_spec(spec)
sys.modules["tool"] = module
spec.loader.exec_module(module)
function = module
for part in name.split("."):
    function = getattr(function, part, None)
if not callable(function):
    sys.exit(f"entryPoint: {name} is no function of {os.path.basename(path)}")
result = function(**json.load(sys.stdin))
if inspect.isawaitable(result):
    async def wait():
        return await result
    result = asyncio.run(wait())
json.dump(result, out, ensure_ascii=False, allow_nan=False)
"""

_JAVASCRIPT = """\
import { pathToFileURL } from 'node:url';
const [path, name] = process.argv.slice(2);
for (const level of ['log', 'info', 'debug']) console[level] = console.error;
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
const module = await import(pathToFileURL(path).href);
const find = (from) => name.split('.').reduce((here, part) => here?.[part], from);
const found = find(module) ?? find(module.default);
if (typeof found !== 'function') {
  process.stderr.write(`entryPoint: ${name} is no exported function of ${path.split('/').pop()}\\n`);
  process.exit(1);
}
const result = await found(JSON.parse(text));
process.stdout.write(JSON.stringify(result ?? null));
"""


def boot_program(language: str) -> str:
    """The program that calls a function of a script: its arguments are the script's path and the function's name."""
    return _PYTHON if language == "python" else _JAVASCRIPT
