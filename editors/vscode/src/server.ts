// Finds the program that serves: setting, interpreter, the workspace's environment, PATH. Every step is logged.

import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

export interface ServerCommand {
  command: string;
  args: string[];
  /** What comes before the verb: nothing for the program, `-m tamis` for an interpreter. */
  before: string[];
}

const WINDOWS = process.platform === "win32";
const PROGRAM = WINDOWS ? "tamis.exe" : "tamis";
const BIN = WINDOWS ? "Scripts" : "bin";

/** The folders of the workspace that the server and its program can read: a path of another file system is not one of this machine. */
export function onDisk(): vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
}

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function resolved(written: string, root: string | undefined): string {
  const home = process.env["HOME"] ?? process.env["USERPROFILE"] ?? "";
  const file = written.startsWith("~/") ? path.join(home, written.slice(2)) : written;
  return path.isAbsolute(file) || root === undefined ? file : path.join(root, file);
}

/** The command line of the server, or undefined when no program was found. */
export function findServer(log: vscode.LogOutputChannel): ServerCommand | undefined {
  const settings = vscode.workspace.getConfiguration("tamis");
  const root = onDisk()[0]?.uri.fsPath;
  const trusted = vscode.workspace.isTrusted;
  const more = settings.get<string[]>("args", []);
  const found = (command: string, before: string[] = []): ServerCommand => ({ command, before, args: [...before, "lsp", ...more] });

  const configured = settings.get<string>("path", "").trim();
  if (configured !== "") {
    const file = resolved(configured, root);
    if (isProgram(file)) {
      log.info(`tamis.path: ${file}`);
      return found(file);
    }
    // A wrong setting is an error, not a reason to start something else.
    log.error(`tamis.path names ${file}, which is not a program`);
    return undefined;
  }

  const interpreter = settings.get<string>("interpreter", "").trim();
  if (interpreter !== "") {
    const file = resolved(interpreter, root);
    const beside = path.join(path.dirname(file), PROGRAM);
    if (isProgram(beside)) {
      log.info(`tamis.interpreter: the program beside it, ${beside}`);
      return found(beside);
    }
    log.error(`tamis.interpreter: there is no ${PROGRAM} beside ${file}; run '${file} -m pip install .' in a clone of Tamis`);
    return undefined;
  }

  if (settings.get<string>("importStrategy", "fromEnvironment") !== "fromEnvironment") {
    log.info("tamis.importStrategy: the workspace's environment is passed over");
  } else if (trusted && root !== undefined) {
    for (const environment of [".venv", "venv"]) {
      const file = path.join(root, environment, BIN, PROGRAM);
      if (isProgram(file)) {
        log.info(`found in the workspace's environment: ${file}`);
        return found(file);
      }
    }
    log.info("no tamis in the workspace's .venv or venv");
  } else if (!trusted) {
    log.info("untrusted workspace: tamis.path, tamis.args, tamis.interpreter and the workspace's environment are not used");
  }

  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
    // A relative entry of PATH would mean a folder of the workspace.
    const file = path.join(folder, PROGRAM);
    if (path.isAbsolute(folder) && isProgram(file)) {
      log.info(`found on the PATH: ${file}`);
      return found(file);
    }
  }
  log.error("no tamis on the PATH");
  return undefined;
}
