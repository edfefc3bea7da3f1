"""VS Code in a browser: the npm package ``code-server`` with headless Chromium, installed by the test that needs it.

Nothing of it is compiled: its password hashing is never used with ``--auth none``, so a stand-in takes the place of that native module,
others write the files of output channels and start the programs of tasks, and the search program comes from the system. What is installed is kept in the user's cache folder.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.editors.npm import kept
from tests.waiting import until

VERSION = "4.104.0"
DRIVER = Path(__file__).with_name("drive.mjs")
STAND_INS = 4
"""Raised when what is put beside the package changes, so that no kept copy is used."""
LOGGING = """const fs = require("node:fs");
class Logger {
  constructor(path) { this.path = path; fs.mkdirSync(require("node:path").dirname(path), { recursive: true }); fs.closeSync(fs.openSync(path, "a")); }
  write(text) { fs.appendFileSync(this.path, this.raw ? text : text + "\\n"); }
  clearFormatters() { this.raw = true; }
  setPattern() {} setLevel() {} getLevel() { return 0; } flush() {} drop() {}
}
for (const level of ["trace", "debug", "info", "warn", "error", "critical"]) Logger.prototype[level] = function (text) { this.write(text); };
const made = async (_name, path) => new Logger(path);
module.exports = { createAsyncRotatingLogger: made, createRotatingLogger: made, setFlushOn() {}, setLevel() {}, version: 1 };
"""
TERMINALS = """const { spawn } = require("node:child_process");
exports.spawn = (file, args, options) => {
  const child = spawn(file, typeof args === "string" ? [args] : args, { cwd: options.cwd, env: options.env, stdio: "pipe" });
  const listen = (subscribe) => (listener) => (subscribe(listener), { dispose() {} });
  const text = (listener) => (data) => listener(String(data).replace(/\\r?\\n/g, "\\r\\n"));
  return {
    pid: child.pid, cols: 80, rows: 30, process: file, handleFlowControl: false,
    onData: listen((listener) => { child.stdout.on("data", text(listener)); child.stderr.on("data", text(listener)); }),
    onExit: listen((listener) => child.on("close", (exitCode) => listener({ exitCode: exitCode ?? 1 }))),
    write(data) { child.stdin.write(data); }, kill(signal) { child.kill(signal); },
    resize() {}, clear() {}, pause() {}, resume() {}, on() {},
  };
};
"""


def chromium() -> str | None:
    """The machine's Chromium."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def install(npm: list[str], env: dict[str, str], folder: Path) -> str | None:
    """Puts code-server and the browser driver into a folder; gives npm's words when it cannot."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--silent"]
    inner = folder / "node_modules" / "code-server" / "lib" / "vscode"
    for where, what in ((folder, [f"code-server@{VERSION}", "playwright-core@1"]), (inner, [])):
        done = subprocess.run(
            [*npm, "install", *quiet, *what],
            cwd=where,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return done.stderr or done.stdout or "npm failed"
    (inner / "node_modules.asar").symlink_to("node_modules")
    hashing = folder / "node_modules" / "argon2"
    shutil.rmtree(hashing)
    hashing.mkdir()
    (hashing / "index.js").write_text("module.exports = {};\n")
    (hashing / "package.json").write_text('{"name": "argon2", "version": "0.0.0", "main": "index.js"}')
    logging = inner / "node_modules" / "@vscode" / "spdlog"
    (logging / "index.js").write_text(LOGGING)
    (logging / "package.json").write_text('{"name": "@vscode/spdlog", "version": "0.0.0", "main": "index.js"}')
    terminals = inner / "node_modules" / "node-pty"
    shutil.rmtree(terminals)
    terminals.mkdir()
    (terminals / "index.js").write_text(TERMINALS)
    (terminals / "package.json").write_text('{"name": "node-pty", "version": "0.0.0", "main": "index.js"}')
    search = shutil.which("rg")
    if search is not None:
        programs = inner / "node_modules" / "@vscode" / "ripgrep" / "bin"
        programs.mkdir(exist_ok=True)
        (programs / "rg").symlink_to(search)
    return None


def installed(npm: list[str], env: dict[str, str]) -> Path | str:
    """A copy that is there already, or one that is installed now for this and later runs; npm's words when it cannot be."""
    ready = os.environ.get("TAMIS_CODE_SERVER")
    if ready:
        return Path(ready)
    refused = ""

    def fill(folder: Path) -> bool:
        nonlocal refused
        refused = install(npm, env, folder) or ""
        return not refused

    found = kept(f"code-server-{VERSION}-{STAND_INS}", fill)
    return refused if found is None else found


def add_extension(package: Path, folder: Path) -> None:
    """Unpacks a packed extension where the server looks for installed ones."""
    target = folder / "tamis.tamis-0.1.0"
    with zipfile.ZipFile(package) as archive:
        for name in archive.namelist():
            if name.startswith("extension/") and not name.endswith("/"):
                path = target / name.removeprefix("extension/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(name))


@contextmanager
def serve(
    node: str, installed: Path, work: Path, settings: dict[str, Any], env: dict[str, str]
) -> Iterator[tuple[str, int]]:
    """Runs the server on a free port of the loopback; gives its address and the session id of its processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # The window is a remote one: settings that name programs count where the machine's settings are.
    for name in ("User", "Machine"):
        folder = work / "user" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(settings))
    (work / "config.yaml").write_text("auth: none\n")
    home = work / "home"
    home.mkdir()
    log = (work / "server.log").open("wb")
    command = [
        *(node, str(installed / "node_modules" / "code-server" / "out" / "node" / "entry.js")),
        *("--config", str(work / "config.yaml"), "--auth", "none", "--bind-addr", f"127.0.0.1:{port}"),
        *("--user-data-dir", str(work / "user"), "--extensions-dir", str(work / "extensions")),
        *("--disable-telemetry", "--disable-update-check"),
        "--disable-getting-started-override",
    ]
    if os.getuid() == 0 and (without := shutil.which("setpriv")) is not None:
        # As any user's: root could write where nobody else can.
        command = [without, "--bounding-set=-dac_override,-dac_read_search", *command]
    command = [*first_served(), *command]
    process = subprocess.Popen(
        command, cwd=work, env={**env, "HOME": str(home)}, stdout=log, stderr=log, start_new_session=True
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process)
        yield address, process.pid
    finally:
        # The whole group: the server's editors and language servers are its children.
        os.killpg(process.pid, 15)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait(10)
        log.close()


def first_served() -> list[str]:
    """What begins a command that is served before other tests, where this user may say so: a session is the longest that one worker has."""
    return ["nice", "-n", "-10"] if os.getuid() == 0 else []


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    def answers() -> bool:
        if process.poll() is not None:
            raise RuntimeError("code-server did not start")
        try:
            with urllib.request.urlopen(f"{address}/healthz"):
                return True
        except (urllib.error.URLError, OSError):
            return False

    until(answers)


def drive(node: str, installed: Path, config: dict[str, Any], work: Path) -> dict[str, Any]:
    """Runs the driver; gives what it saw."""
    config = {
        **config,
        "playwright": str(installed / "node_modules" / "playwright-core" / "package.json"),
        "chromium": chromium(),
        "shots": str(work),
    }
    file = work / "drive.json"
    file.write_text(json.dumps(config))
    done = subprocess.run(
        [*first_served(), node, str(DRIVER), str(file)],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
