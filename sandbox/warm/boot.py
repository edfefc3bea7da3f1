"""The starters of warm sandboxes: programs that stand in front of a script, load what it will need, and wait.

Nothing of the tool runs before the word to go. After it, the script must not be able to tell, but for what
`docs/warm.md` names. Knows neither the pool nor the sandbox; the programs are text that runs inside.

Python's can stand in the place of the shell that is the gate else: then it looks at nothing of the tool before a first word.

The protocol is the gate's: a line on stdout says that it waits; the line `go` on stdin starts the script (variables of this
call may follow the word, each behind a zero byte), another line on stdout says that it does, and what follows on both is the script's. The end of stdin instead of that line ends the starter.
"""

from __future__ import annotations

from tamis.sandbox.model import Language

# The warnings module does not count frames of a file named like this: a `stacklevel` that leads out of the script ends
# there as in a cold run.
PYTHON_PATH = "/run/importlib_bootstrap_warm.py"
NODE_PATH = "/run/warm.cjs"

# Runs on Python 3.9 and later. Whatever cannot be prepared faithfully (a script that does not compile or compiles with
# warnings) ends the starter before it says that it waits, and such a script is always started cold. What turns out only
# at the word to go (a file beside the script that now hides a module of the standard library) starts the interpreter
# again in the same sandbox, as a cold run would. After the script come the steps of the interpreter's own end, in their
# order; only the taking down of the standard library's modules is left out. Where foreign machine code was loaded, which
# may have an end of its own, nothing is left out.
_PYTHON = r'''
pristine = dict(globals())
import gc
gc.disable()
import os, sys

def told():
    """Says that it waits, and reads one line of the daemon's, bytewise: what follows is the script's. Its end ends this program."""
    os.write(1, b"\n")
    word = b""
    while not word.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            os._exit(1)
        word += piece
    return word[:-1]

GATE = TEMPLATE = False
if GATE and not TEMPLATE:
    told()
launcher, orders = sys.argv[0], list(getattr(sys, "orig_argv", ()))
started_with = set(sys.modules)
if not orders:
    orders = [sys.executable, "-s", "-B", *sys.argv]
orders.remove(launcher)
if TEMPLATE:
    control = sys.argv.pop(1)
    orders.remove(control)
program = sys.argv[1]
del sys.argv[0], sys.path[0]
import _frozen_importlib_external as loaders, _imp, _signal as signal, atexit, opcode, time, warnings

def ready_or_not():
    """The script's code with what it imports from the standard library loaded; None when it must be started cold."""
    folder = os.path.dirname(os.path.realpath(program))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            with open(program, "rb") as stream:
                code = compile(stream.read(), program, "exec", dont_inherit=True)
            names, beside = imported(code), [sys.argv[1]] if by_function else []
            known = getattr(sys, "stdlib_module_names", COMMON)
            for name in names:
                first = name.partition(".")[0]
                if first not in known and len(beside) < 20 and folder + "/" + first + ".py" not in beside:
                    beside.append(folder + "/" + first + ".py")
                    names += imported_by(beside[-1])
            names += imported_by(sys.argv[1]) if by_function else ()
            for name in names:
                if name.partition(".")[0] in known and name.partition(".")[0] not in NEVER:
                    try:
                        __import__(name)
                    except ImportError:
                        pass
        except Exception:
            return None
    sys.path.insert(0, folder)
    return None if seen else code

def imported_by(path):
    """What a file imports that is itself only read, not run."""
    try:
        with open(path, "rb") as stream:
            return imported(compile(stream.read(), path, "exec", dont_inherit=True))
    except Exception:
        return []

def imported(code):
    wanted, extended, words = [], 0, code.co_code
    for at in range(0, len(words), 2):
        argument = words[at + 1] | extended
        if words[at] == opcode.opmap["IMPORT_NAME"]:
            wanted.append(code.co_names[argument])
        extended = argument << 8 if words[at] == opcode.EXTENDED_ARG else 0
    for inner in code.co_consts:
        if isinstance(inner, type(code)):
            wanted += imported(inner)
    return wanted

def hidden():
    """Whether something beside the script would have been imported in the place of what is loaded."""
    try:
        for place in places:
            with os.scandir(place) as entries:
                for entry in entries:
                    stem, dot, rest = entry.name.partition(".")
                    if stem in loaded and ("." + rest in SUFFIXES if dot else entry.is_dir()):
                        return True
    except OSError:
        return True
    return False

def stamp():
    found = [os.stat(place) for place in places]
    return [(one.st_ino, one.st_mtime_ns, one.st_ctime_ns) for one in found]

def wait():
    for one in told().split(b"\0")[1:]:
        name, _, value = one.partition(b"=")
        os.environb[name] = value
    os.write(1, b"\n")

def give_up():
    """Has the script started cold: elsewhere, or where a template has made a sandbox for this one call, in it."""
    if TEMPLATE:
        wait()
        os.execv(orders[0], orders)
    os._exit(1)

def exit_status(error):
    value = error.code
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF if -(1 << 63) <= value < 1 << 63 else 255
    try:
        sys.stderr.write(str(value))
        sys.stderr.write("\n")
    except BaseException:
        pass
    return 1

def without_starter(error):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == launcher:
        trace = trace.tb_next
    return error.with_traceback(trace)

def report(error):
    without_starter(error)
    if isinstance(error, SystemExit):
        return exit_status(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    second = None
    if hook is None:
        sys.stderr.write("sys.excepthook is missing\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    else:
        try:
            hook(type(error), error, error.__traceback__)
        except BaseException as failed:
            second = without_starter(failed)
    if isinstance(second, SystemExit):
        return exit_status(second)
    if second is not None:
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(second), second, second.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return -2 if type(error) is KeyboardInterrupt else 1

def flush():
    fine = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as error:
            fine = False
            if name == "stdout":
                try:
                    sys.stderr.write("Exception ignored in: %r\n" % (stream,))
                    sys.__excepthook__(type(error), error.with_traceback(None), None)
                except BaseException:
                    pass
    return fine

def foreign():
    """Whether machine code was loaded that is not the standard library's."""
    own = os.path.dirname(os.__file__) + os.sep
    for name, module in list(sys.modules.items()):
        file = None if kept.get(name) is module else getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".so") and (not file.startswith(own) or "-packages" in file):
            return True
    return "ctypes" in sys.modules

def finish(status):
    threading = sys.modules.get("threading")
    try:
        if threading is not None:
            threading._shutdown()
    except BaseException as error:
        sys.stderr.write("Exception ignored in: %r\n" % (threading,))
        sys.__excepthook__(type(error), error, error.__traceback__)
    try:
        atexit._run_exitfuncs()
    except BaseException:
        pass
    if not flush():
        status = 120
    if foreign():
        if status == -2:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        sys.exit(status)
    for name in GONE:
        setattr(sys, name, None)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    sys.modules.clear()
    return status

#SERVE#
# for Python 3.9, which does not know what its library holds
COMMON = (
    "argparse base64 collections contextlib csv dataclasses datetime decimal enum functools glob hashlib io itertools "
    "json logging math operator os pathlib random re shutil statistics string subprocess sys tempfile textwrap threading "
    "time traceback typing unicodedata urllib uuid"
).split()
NEVER = {"antigravity", "this", "idlelib", "turtle", "turtledemo", "test", "lib2to3", "ctypes", "_ctypes", "readline", "rlcompleter"}
GONE = (
    "path argv ps1 ps2 last_type last_value last_traceback last_exc path_hooks path_importer_cache meta_path __interactivehook__"
).split()
SUFFIXES = {".py", ".pyc", *_imp.extension_suffixes()}
by_function = program == "/run/boot.py"
if TEMPLATE:
    serve(int(control))
code = ready_or_not()
if code is None:
    give_up()
# What is frozen is not looked at again, which makes the collection at the end short: so the script's module comes after.
# Nothing is collected before: what the library's own modules leave behind while they load is not worth the walk.
gc.freeze()
gc.enable()
main = type(sys)("__main__")
space = main.__dict__
space.update(pristine)
space["__file__"] = program
space["__loader__"] = loaders.SourceFileLoader("__main__", program)
if "__annotations__" in space:
    space["__annotations__"] = {}
loaded = {name.partition(".")[0] for name in set(sys.modules) - started_with}
places = [sys.path[0]]
if by_function:
    places.append(os.path.dirname(sys.argv[1]))
    while len(places[-1]) > len("/tool"):
        places.append(os.path.dirname(places[-1]))
seen_at = stamp()
if hidden():
    give_up()
kept = dict(sys.modules)
wait()
if stamp() != seen_at and hidden():
    os.execv(orders[0], orders)
logging = sys.modules.get("logging")
if logging is not None:
    logging._startTime = time.time_ns() if isinstance(logging._startTime, int) else time.time()
if hasattr(sys, "orig_argv"):
    sys.orig_argv = orders
sys.modules["__main__"] = main
del main, pristine
failed = None
try:
    exec(code, space)
except BaseException as error:
    failed = error
code = 0 if failed is None else report(failed)
failed = None
del space
code = finish(code)
gc.collect()
flush()
if code == -2:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
os._exit(code)
'''

# What makes the starter a template: in the sandbox of one tool it forks for each call, and only what it forked goes on and reads
# the script. It looks at nothing of the tool, has no capability, and hears the daemon alone, over one socket that nothing below
# it inherits. Each call gets three processes: the monitor, which enters new namespaces of every kind; the init, pid 1 there, which
# mounts, is limited, gives up all rights for good and waits for the script's end; and the script's. `terms` is what the daemon
# says of all calls: what is None or empty is a layer that a test left out.
_SERVE = r"""
def serve(control):
    import array, ctypes, fcntl, json, resource, select, socket, struct
    for name in COMMON:
        try:
            __import__(name)
        except ImportError:
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    ends = socket.socket(fileno=control)
    ends.set_inheritable(False)

    def must(answer):
        if answer != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def mount(source, place, kind, flags, data=None):
        must(libc.mount(source, place, kind, ctypes.c_ulong(flags), data))

    def put(path, text):
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, text)
        os.close(fd)

    def powerless():
        must(libc.capset(header, nothing))
        must(libc.prctl(38, 1, 0, 0, 0))

    os.write(1, b"\n")
    terms = json.loads(ends.recv(1 << 20))
    rules = bytes.fromhex(terms["filter"])
    rows = ctypes.create_string_buffer(rules, len(rules))
    rules = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows) // 8, ctypes.addressof(rows)), 16)
    header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0), 8)
    nothing = ctypes.create_string_buffer(24)
    uid, gid = os.getuid(), os.getgid()
    look = select.poll()
    look.register(ends, select.POLLIN)
    below = 0
    gc.freeze()
    while True:
        word, given = b"", ()
        if look.poll(1000 if below else None):
            word, given, _, _ = ends.recvmsg(64, socket.CMSG_SPACE(16))
            if not word:
                # what still runs may end first
                while below:
                    os.wait()
                    below -= 1
                os._exit(0)
        while below and os.waitpid(-1, os.WNOHANG)[0]:
            below -= 1
        if not word:
            continue
        fds = array.array("i")
        for _, _, data in given:
            fds.frombytes(data[: len(data) // fds.itemsize * fds.itemsize])
        try:
            forked = os.fork()
        except OSError:
            ends.send(word)
            forked = -1
        else:
            below += 1
        if not forked:
            break
        for fd in fds:
            os.close(fd)
    try:
        stdin, stdout, stderr, status = fds
        for number, fd in enumerate((stdin, stdout, stderr)):
            os.dup2(fd, number)
            os.close(fd)
        must(libc.unshare(terms["namespaces"]))
        put("/proc/self/setgroups", b"deny")
        put("/proc/self/uid_map", b"%d %d 1" % (uid, uid))
        put("/proc/self/gid_map", b"%d %d 1" % (gid, gid))
        init = os.fork()
        if init:
            held = array.array("i", [os.pidfd_open(os.getpid()), os.pidfd_open(init)])
            ends.sendmsg([word], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, held)])
            ends.close()
            os.closerange(0, 3)
            powerless()
            _, _, used = os.wait4(init, 0)
            spent = int((used.ru_utime + used.ru_stime) * 1e6)
            os.write(status, b'{"cpu-us": %d, "rss-kb": %d}\n' % (spent, used.ru_maxrss))
            os._exit(0)
        ends.close()
        if terms["session"]:
            os.setsid()
        mount(None, b"/", None, 0x44000)
        for place, size in terms["tmpfs"]:
            mount(b"tmpfs", place.encode(), b"tmpfs", 6, b"mode=1777" + (b",size=%d" % size if size else b""))
        if not program.startswith("/run/"):
            # where the template's own program stands, and nothing of the script's
            mount(b"tmpfs", b"/run", b"tmpfs", 7, b"mode=0,size=4096")
        mount(b"devpts", b"/dev/pts", b"devpts", 10, b"newinstance,ptmxmode=0666,mode=620")
        if terms["pids"]:
            mount(b"proc", b"/proc", b"proc", 14)
        if terms["userns"]:
            put("/proc/sys/user/max_user_namespaces", b"0")
        if terms["proc-sys"]:
            mount(b"/proc/sys", b"/proc/sys", None, 0x1000)
            mount(None, b"/proc/sys", None, 0x102F)
        if terms["pids"]:
            mount(b"/dev/null", b"/proc/1/mem", None, 0x1000)
            mount(None, b"/proc/1/mem", None, 0x102F)
            mount(b"tmpfs", b"/proc/1/task", b"tmpfs", 7, b"mode=0555,size=4096")
        if terms["namespaces"] & 0x40000000:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug:
                fcntl.ioctl(plug, 0x8914, struct.pack("16sh22x", b"lo", 0x41))
        # here it is put into its control group, which then is the root of what it sees
        told()
        must(libc.unshare(0x2000000))
        for name, soft, hard in terms["rlimits"]:
            most = resource.getrlimit(name)[1]
            if most != resource.RLIM_INFINITY:
                soft, hard = (most if limit < 0 else min(limit, most) for limit in (soft, hard))
            resource.setrlimit(name, (soft, hard))
        if terms["capabilities"]:
            for number in range(64):
                if libc.prctl(24, number, 0, 0, 0) != 0:
                    break
            must(libc.prctl(47, 4, 0, 0, 0))
            powerless()
        # pid 1 hears of no signal that it has no handler for
        interrupted = signal.signal(signal.SIGINT, signal.SIG_DFL)
        must(libc.prctl(4, 0, 0, 0, 0))
        if len(rows):
            must(libc.prctl(22, 2, rules, 0, 0))
        script = os.fork()
        if script:
            os.closerange(0, 3)
            while True:
                pid, ended = os.wait()
                if pid == script:
                    break
            code = os.waitstatus_to_exitcode(ended)
            os.write(status, b'{"exit-code": %d, "signal": %d}\n' % (code if code >= 0 else 128 - code, max(0, -code)))
            os._exit(0)
        os.closerange(3, 4096)
        must(libc.prctl(4, 1, 0, 0, 0))
        signal.signal(signal.SIGINT, interrupted)
    except BaseException as error:
        try:
            os.write(2, ("the template's sandbox did not come up: %r" % (error,)).encode())
        finally:
            os._exit(1)
    for name in ("ctypes", "ctypes._endian"):
        sys.modules.pop(name, None)

"""

# Node runs a preload before it looks at the script, so what follows the word to go is the runtime's own way of starting
# it. `execArgv` is what a child process made by `fork` would be started with.
_NODE = r"""
'use strict';
if (require('worker_threads').isMainThread) {
  const fs = require('fs');
  const at = process.execArgv.lastIndexOf(__filename);
  if (at > 0) process.execArgv.splice(at - 1, 2);
  delete require.cache[__filename];
  const { isBuiltin } = require('module');
  const common = ['assert', 'buffer', 'child_process', 'crypto', 'events', 'fs/promises', 'net', 'os', 'path', 'readline',
    'stream', 'stream/promises', 'string_decoder', 'timers/promises', 'url', 'util', 'zlib'];
  const loud = /^(_.*|domain|punycode|sys|sqlite|wasi|trace_events|inspector.*|test.*|repl|ffi|quic)$/;
  let text = '';
  try { text = fs.readFileSync(process.argv[1], 'utf8'); } catch { process.reallyExit(1); }
  for (const [, name] of text.matchAll(/(?:require\s*\(|from|import)\s*['"](?:node:)?([\w/]+)['"]/g)) common.push(name);
  for (const name of new Set(common)) {
    if (!loud.test(name) && isBuiltin(name)) try { require(name); } catch { process.reallyExit(1); }
  }
  if (process.argv[1].endsWith('.mjs')) import('node:path').catch(() => {});
  fs.writeSync(1, '\n');
  const byte = Buffer.alloc(1);
  const word = [];
  for (;;) {
    let count = 0;
    try {
      count = fs.readSync(0, byte, 0, 1, null);
    } catch (error) {
      if (error.code === 'EINTR') continue;
    }
    if (count === 0) process.reallyExit(1);
    if (byte[0] === 10) break;
    word.push(byte[0]);
  }
  for (const one of Buffer.from(word).toString('utf8').split('\0').slice(1)) {
    process.env[one.slice(0, one.indexOf('='))] = one.slice(one.indexOf('=') + 1);
  }
  fs.writeSync(1, '\n');
}
"""


# What CPython runs instead of source when a file begins like this, whatever the file is called. Other Pythons answer that they do not.
_COMPILE = r"""
import marshal, sys
import _frozen_importlib_external as loaders
if sys.implementation.name == "cpython":
    code = compile(sys.argv[1], sys.argv[2], "exec", dont_inherit=True)
    sys.stdout.buffer.write(loaders.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
else:
    print("source")
"""


def starter(language: Language) -> bytes:
    """The starter of a language, behind a gate; empty where a cold start is as fast (bun)."""
    return {"python": _PYTHON.encode(), "nodejs": _NODE.encode(), "bun": b""}[language]


def python_starter(*, is_gate: bool) -> str:
    """Python's starter, which `is_gate` itself or stands behind one."""
    return _PYTHON.replace("GATE = TEMPLATE = False", "GATE, TEMPLATE = True, False", 1) if is_gate else _PYTHON


def template() -> bytes:
    """Python's starter as a template, which is its own gate."""
    return (
        _PYTHON.replace("GATE = TEMPLATE = False", "GATE = TEMPLATE = True", 1).replace("#SERVE#", _SERVE, 1).encode()
    )


def compiling(python: str, *, is_gate: bool) -> tuple[str, ...]:
    """The command by which a Python compiles its starter: 1.5 ms of each start, and half a megabyte while it waits."""
    return (python, "-I", "-S", "-B", "-c", _COMPILE, python_starter(is_gate=is_gate), PYTHON_PATH)


def compiled(answer: bytes, *, is_gate: bool) -> bytes:
    """The starter as its interpreter answered; the source where it did not."""
    is_code = answer[2:4] == b"\r\n" and len(answer) > 16
    return answer if is_code else python_starter(is_gate=is_gate).encode()
