// What runs when VS Code starts us, which is in every folder with JSON: it looks whether anything here is ours and returns. The client is
// loaded when something is, or when a command asks for it.

import * as vscode from "vscode";
import { isOurs, PATTERNS, virtualScheme } from "./pure";
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
  // The server reads folders from a disk and runs what is there: in a virtual workspace it would look at other files than the editor shows.
  const virtual = (): string | undefined => virtualScheme((vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.scheme));
  const start = (why: string): void => {
    if (main === undefined && virtual() === undefined) {
      log.info(`starting: ${why}`);
      load().start();
    }
  };
  const look = (document: vscode.TextDocument): void => {
    const { scheme, path } = document.uri;
    if ((scheme === "file" || scheme === "untitled") && isOurs(path, document.languageId)) start(path);
  };

  for (const command of COMMANDS) {
    context.subscriptions.push(vscode.commands.registerCommand(command, (...args: unknown[]) => {
      const scheme = virtual();
      if (main !== undefined || scheme === undefined) return load().command(command, args);
      const why = vscode.l10n.t("Tamis: this workspace ({0}:) is not on a disk, from where tools are read and run. Clone it and open the folder.", scheme);
      // What has no button is cut off behind its first line.
      return vscode.window.showWarningMessage(why, vscode.l10n.t("Show Log")).then((chosen) => chosen && log.show());
    }));
  }
  context.subscriptions.push(vscode.workspace.onDidOpenTextDocument(look));
  // A manifest that comes later, by whatever hand.
  const watcher = vscode.workspace.createFileSystemWatcher(`{${PATTERNS.join(",")}}`, false, true, true);
  context.subscriptions.push(watcher, watcher.onDidCreate((uri) => start(uri.path)));
  const tookMs = performance.now() - began;
  log.info(`extension ${String(context.extension.packageJSON.version)}, VS Code ${vscode.version}, activated in ${tookMs.toFixed(1)} ms`);
  setTimeout(() => {
    const scheme = virtual();
    if (scheme !== undefined) log.info(`nothing is started: this workspace (${scheme}:) is not on a disk`);
    vscode.workspace.textDocuments.forEach(look);
    if (main === undefined && scheme === undefined) {
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
