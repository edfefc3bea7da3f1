// What runs when VS Code starts us, which is in every folder with JSON: it looks whether anything here is ours and returns. The client is
// loaded when something is, or when a command asks for it.

import * as vscode from "vscode";
import { isOurs, PATTERNS } from "./pure";
import { COMMANDS } from "./commands";
import type { Main } from "./main";

export interface Api {
  /** How long `activate` took, in milliseconds. */
  readonly tookMs: number;
  readonly running: boolean;
}

let main: Main | undefined;

export function activate(context: vscode.ExtensionContext): Api {
  const began = performance.now();
  const log = vscode.window.createOutputChannel("Tamis", { log: true });
  context.subscriptions.push(log);

  // Another file of the package, so that a folder without tools does not even read it.
  const load = (): Main => {
    if (main === undefined) {
      const module = require("./main.js") as typeof import("./main");
      main = module.create(context, log);
    }
    return main;
  };
  const start = (why: string): void => {
    if (main === undefined) {
      log.info(`starting: ${why}`);
      load().start();
    }
  };
  const look = (document: vscode.TextDocument): void => {
    if (isOurs(document.uri.path, document.languageId)) start(document.uri.path);
  };

  for (const command of COMMANDS) {
    context.subscriptions.push(vscode.commands.registerCommand(command, (...args: unknown[]) => load().command(command, args)));
  }
  context.subscriptions.push(vscode.workspace.onDidOpenTextDocument(look));
  // A manifest that comes later, by whatever hand.
  const watcher = vscode.workspace.createFileSystemWatcher(`{${PATTERNS.join(",")}}`, false, true, true);
  context.subscriptions.push(watcher, watcher.onDidCreate((uri) => start(uri.path)));
  const tookMs = performance.now() - began;
  log.info(`extension ${String(context.extension.packageJSON.version)}, VS Code ${vscode.version}, activated in ${tookMs.toFixed(1)} ms`);
  setTimeout(() => {
    vscode.workspace.textDocuments.forEach(look);
    if (main === undefined) {
      void vscode.workspace.findFiles(`{${PATTERNS.join(",")}}`, "**/node_modules/**", 1).then(
        (found) => {
          if (found[0] !== undefined) start(found[0].path);
          else log.info("nothing here is ours; waiting for a manifest");
        },
        () => undefined,
      );
    }
  }, 0);
  return {
    tookMs,
    get running() {
      return main !== undefined;
    },
  };
}

export async function deactivate(): Promise<void> {
  await main?.stop();
}
