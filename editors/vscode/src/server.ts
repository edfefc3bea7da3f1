// Finds the program that serves: setting, the workspace's virtual environment, PATH. Every step is logged.

import * as fs from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

export interface ServerCommand {
  command: string;
  args: string[];
}

const PROGRAM = process.platform === "win32" ? "tamis.exe" : "tamis";

function isProgram(file: string): boolean {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function expandHome(file: string): string {
  const home = process.env["HOME"] ?? process.env["USERPROFILE"] ?? "";
  return file.startsWith("~/") ? path.join(home, file.slice(2)) : file;
}

/** The command line of the server, or undefined when no program was found. */
export function findServer(log: vscode.LogOutputChannel): ServerCommand | undefined {
  const settings = vscode.workspace.getConfiguration("tamis");
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const trusted = vscode.workspace.isTrusted;
  const args = ["lsp", ...settings.get<string[]>("args", [])];

  const configured = expandHome(settings.get<string>("path", "").trim());
  if (configured !== "") {
    const file = path.isAbsolute(configured) || root === undefined ? configured : path.join(root, configured);
    if (isProgram(file)) {
      log.info(`tamis.path: ${file}`);
      return { command: file, args };
    }
    // A wrong setting is an error, not a reason to start something else.
    log.error(`tamis.path names ${file}, which is not a program`);
    return undefined;
  }

  if (trusted && root !== undefined) {
    const bin = process.platform === "win32" ? "Scripts" : "bin";
    for (const environment of [".venv", "venv"]) {
      const file = path.join(root, environment, bin, PROGRAM);
      if (isProgram(file)) {
        log.info(`found in the workspace's environment: ${file}`);
        return { command: file, args };
      }
    }
    log.debug("no tamis in the workspace's .venv or venv");
  } else if (!trusted) {
    log.info("untrusted workspace: tamis.path, tamis.args and the workspace's environment are not used");
  }

  for (const folder of (process.env["PATH"] ?? "").split(path.delimiter)) {
    // A relative entry of PATH would mean a folder of the workspace.
    if (!path.isAbsolute(folder)) {
      continue;
    }
    const file = path.join(folder, PROGRAM);
    if (isProgram(file)) {
      log.info(`found on the PATH: ${file}`);
      return { command: file, args };
    }
  }
  log.error("no tamis on the PATH");
  return undefined;
}
