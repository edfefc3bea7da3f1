"""Calling one function of a script instead of running it as a program (``handler.entryPoint``, seed 003 §2.2.2).

A boot program of the script's own language reads the arguments, calls the function and prints its result as JSON. What the
script prints by itself goes to standard error, so that it cannot break the result. Python functions get keyword arguments,
JavaScript functions one object; coroutines and promises are awaited. Must not know the sandbox.
"""

from __future__ import annotations

# Runs on Python 3.9 and later. The result gets a descriptor of its own, and 1 becomes the log, also for child processes and
# libraries that write to it. A script in a package is imported as a part of it, so that its relative imports work.
_PYTHON = """\
import asyncio, importlib.util, inspect, json, os, sys, traceback
path, name = sys.argv[1:3]
sys.stdout.flush()
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sys.stdout = sys.stderr
sys.argv[:] = [path]
folder, module_name, package = os.path.dirname(path), os.path.splitext(os.path.basename(path))[0], []
while os.path.isfile(os.path.join(folder, "__init__.py")):
    folder, part = os.path.split(folder)
    package.insert(0, part)
sys.path[:1] = [folder, os.path.dirname(path)] if package else [folder]
def fail(text):
    sys.stderr.write(f"entryPoint: {text}\\n")
    sys.exit(1)
def load():
    if package:
        return importlib.import_module(".".join([*package, module_name]))
    spec = importlib.util.spec_from_file_location("__tool__", path, loader=importlib.machinery.SourceFileLoader("__tool__", path))
    module = importlib.util.module_from_spec(spec)
    sys.modules["__tool__"] = module
    spec.loader.exec_module(module)
    return module
def find(here):
    for part in name.split("."):
        owner, here = here, getattr(here, part, None)
        if inspect.isclass(owner) and inspect.isfunction(here) and not isinstance(inspect.getattr_static(owner, part), staticmethod):
            here = getattr(owner(), part)
    if callable(here):
        return here
    known = sorted(key for key, value in vars(module).items() if callable(value) and not key.startswith("_"))
    fail(f"{name} is no function of {os.path.basename(path)}" + (f"; it has {', '.join(known[:20])}" if known else ""))
async def wait(value):
    return await value
def encode(value):
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        fail(f"what {name} returned, of type {type(value).__name__}, is no JSON: {error}")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value).encode("ascii")
try:
    module = load()
    function = find(module)
    result = function(**json.loads(sys.stdin.buffer.read()))
    if inspect.isawaitable(result):
        result = asyncio.run(wait(result))
except Exception as error:
    trace = error.__traceback__
    while trace is not None and (trace.tb_frame.f_code.co_filename == __file__ or trace.tb_frame.f_code.co_filename.startswith("<frozen")):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
    sys.exit(1)
out.write(encode(result))
out.flush()
"""

# An error of the script's stays uncaught: the runtime then shows it with its source line. What the function leaves running
# (timers, sockets) does not hold the answer back.
_JAVASCRIPT = """\
import { Console } from 'node:console';
import { pathToFileURL } from 'node:url';
const [path, name] = process.argv.slice(2);
process.argv.splice(1, process.argv.length, path);
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
const log = new Console(process.stderr, process.stderr);
for (const key of Object.keys(console)) if (typeof log[key] === 'function') console[key] = log[key].bind(log);
const fail = (text) => { process.stderr.write(`entryPoint: ${text}\\n`, () => process.exit(1)); return new Promise(() => {}); };
const isClass = (value) => typeof value === 'function' && /^class\\b/.test(Function.prototype.toString.call(value));
const find = (root) => {
  let owner, here = root;
  for (const [at, part] of name.split('.').entries()) {
    owner = here;
    if (owner === null || owner === undefined || (at === 0 && !Object.prototype.hasOwnProperty.call(owner, part))) return undefined;
    if (isClass(owner) && !(part in owner) && part in owner.prototype) owner = new owner();
    here = owner[part];
  }
  return typeof here === 'function' ? (args) => here.call(owner, args) : undefined;
};
const shown = (value) => (Object.is(value, undefined) ? 'undefined' : typeof value === 'number' ? String(value)
  : typeof value === 'object' && value !== null ? (value.constructor?.name ?? 'object') : typeof value);
const encode = (value) => {
  const text = JSON.stringify(value ?? null, (key, item) => {
    const wrong = typeof item === 'bigint' || (typeof item === 'number' && !Number.isFinite(item)) || item instanceof Map || item instanceof Set;
    if (wrong) throw new TypeError(`${key ? `'${key}' is` : 'it is'} ${shown(item)}`);
    return item;
  });
  if (text === undefined) throw new TypeError(`it is a ${typeof value}`);
  return text;
};
let text = '';
for await (const chunk of process.stdin.setEncoding('utf8')) text += chunk;
const module = await import(pathToFileURL(path).href);
const call = find(module) ?? find(module.default);
if (call === undefined) {
  const known = [...new Set([...Object.keys(module), ...Object.keys(Object(module.default))])].filter((key) => !['default', 'module.exports'].includes(key));
  await fail(`${name} is no exported function of ${path.split('/').pop()}${known.length ? `; it exports ${known.slice(0, 20).join(', ')}` : ''}`);
}
const result = await call(JSON.parse(text));
let answer;
try {
  answer = encode(result);
} catch (error) {
  await fail(`what ${name} returned is no JSON: ${String(error.message).split('\\n')[0]}`);
}
write(answer, () => process.exit());
"""


def boot_program(language: str) -> str:
    """The program that calls a function of a script: its arguments are the script's path and the function's name."""
    return _PYTHON if language == "python" else _JAVASCRIPT
