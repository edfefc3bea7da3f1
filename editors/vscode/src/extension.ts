// The VS Code client: starts one server for all folders, and says where to look when it cannot.

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  State,
  type ErrorHandler,
  type LanguageClientOptions,
} from "vscode-languageclient/node";
import { findServer, type ServerCommand } from "./server";

const RESTARTS = 4;
const WITHIN_MS = 3 * 60 * 1000;

let client: LanguageClient | undefined;
let running: ServerCommand | undefined;
let status: vscode.LanguageStatusItem | undefined;
let changing: Promise<void> = Promise.resolve();

function selector(): vscode.DocumentFilter[] {
  const found: vscode.DocumentFilter[] = [
    { scheme: "file", pattern: "**/*.tool.json" },
    { scheme: "file", pattern: "**/*.tool.jsonc" },
    { scheme: "file", pattern: "**/agent_profile.json" },
    { scheme: "file", pattern: "**/*.agent_profile.json" },
    { scheme: "file", pattern: "**/plugin-manifest.json" },
    { scheme: "file", pattern: "**/tamis.toml" },
    { language: "tam" },
    { language: "vcp" },
    { language: "toolaction" },
  ];
  if (vscode.workspace.getConfiguration("tamis").get<boolean>("markdown.enable", true)) {
    found.push({ language: "markdown" }, { language: "plaintext", scheme: "untitled" });
  }
  if (vscode.workspace.getConfiguration("tamis").get<boolean>("python.enable", false)) {
    found.push({ scheme: "file", language: "python" });
  }
  return found;
}

/** Restarts a server that dies, four times in three minutes; then asks once. */
function restartPolicy(log: vscode.LogOutputChannel): ErrorHandler {
  let deaths: number[] = [];
  return {
    error: (_error, _message, count) => ({
      action: (count ?? 0) <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown,
    }),
    closed: () => {
      const now = Date.now();
      deaths = [...deaths.filter((time) => now - time < WITHIN_MS), now];
      if (deaths.length <= RESTARTS) {
        log.warn(`the server ended; start ${deaths.length} of ${RESTARTS}`);
        return { action: CloseAction.Restart };
      }
      void vscode.window
        .showErrorMessage(`Tamis: the server ended ${deaths.length} times in three minutes.`, "Show Log", "Restart")
        .then((choice) => {
          if (choice === "Show Log") {
            void vscode.commands.executeCommand("tamis.showServerLog");
          } else if (choice === "Restart") {
            void vscode.commands.executeCommand("tamis.restart");
          }
        });
      return { action: CloseAction.DoNotRestart, handled: true };
    },
  };
}

async function start(log: vscode.LogOutputChannel, serverLog: vscode.LogOutputChannel): Promise<void> {
  const server = findServer(log);
  if (server === undefined) {
    show("not found", vscode.LanguageStatusSeverity.Error);
    const choice = await vscode.window.showErrorMessage(
      "Tamis: the program 'tamis' was not found. Run 'pip install .' in a clone of Tamis, or set tamis.path to its .venv/bin/tamis.",
      "Open Settings",
      "Show Log",
    );
    if (choice === "Open Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "tamis.path");
    } else if (choice === "Show Log") {
      log.show();
    }
    return;
  }
  const options: LanguageClientOptions = {
    documentSelector: selector() as LanguageClientOptions["documentSelector"],
    outputChannel: serverLog,
    traceOutputChannel: log,
    // VS Code's own JSON service checks manifests against the schema that the extension brings.
    initializationOptions: { trusted: vscode.workspace.isTrusted, schemaDiagnostics: "off" },
    errorHandler: restartPolicy(log),
  };
  const started = new LanguageClient("tamis", "Tamis Language Server", server, options);
  started.onDidChangeState(({ newState }) => {
    if (newState === State.Running) {
      show(started.initializeResult?.serverInfo?.version ?? "running", vscode.LanguageStatusSeverity.Information);
    } else if (newState === State.Stopped) {
      show("stopped", vscode.LanguageStatusSeverity.Warning);
    }
  });
  client = started;
  running = server;
  try {
    await started.start();
  } catch (error) {
    log.error(`the server did not start: ${String(error)}`);
    show("did not start", vscode.LanguageStatusSeverity.Error);
  }
}

async function stop(): Promise<void> {
  const stopped = client;
  client = undefined;
  running = undefined;
  if (stopped !== undefined) {
    try {
      await stopped.dispose();
    } catch {
      // A server that is dead already cannot be stopped.
    }
  }
}

function show(text: string, severity: vscode.LanguageStatusSeverity): void {
  if (status !== undefined) {
    status.text = `tamis ${text}`;
    status.severity = severity;
  }
}

/** Starts and stops follow each other; two at once would leave a server behind. */
function queue(work: () => Promise<void>): Promise<void> {
  changing = changing.then(work, work);
  return changing;
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("Tamis", { log: true });
  const serverLog = vscode.window.createOutputChannel("Tamis Language Server", { log: true });
  status = vscode.languages.createLanguageStatusItem("tamis.status", selector());
  status.name = "Tamis";
  status.command = { command: "tamis.showServerLog", title: "Show Log" };
  log.info(`extension ${String(context.extension.packageJSON.version)}, VS Code ${vscode.version}`);

  const restart = (): Promise<void> =>
    queue(async () => {
      await stop();
      await start(log, serverLog);
    });
  // A restart only where the workspace, now that it is trusted, names another program.
  const trusted = (): Promise<void> =>
    queue(async () => {
      if (client === undefined || JSON.stringify(findServer(log)) !== JSON.stringify(running)) {
        await stop();
        await start(log, serverLog);
      } else {
        await client.sendNotification("workspace/didChangeConfiguration", { settings: { tamis: { trusted: true } } });
      }
    });
  context.subscriptions.push(
    log,
    serverLog,
    status,
    vscode.commands.registerCommand("tamis.restart", restart),
    vscode.commands.registerCommand("tamis.showServerLog", () => serverLog.show()),
    vscode.commands.registerCommand("tamis.showClientLog", () => log.show()),
    vscode.workspace.onDidGrantWorkspaceTrust(trusted),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (["tamis.path", "tamis.args", "tamis.markdown", "tamis.python"].some((name) => event.affectsConfiguration(name))) {
        await restart();
      }
    }),
  );
  await queue(() => start(log, serverLog));
}

export async function deactivate(): Promise<void> {
  await queue(stop);
}
