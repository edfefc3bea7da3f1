// The client: one server for all folders, its life, its status, and what of its commands an editor does better than a server.

import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  ErrorCodes,
  LanguageClient,
  ResponseError,
  State,
  type ClientCapabilities,
  type ErrorHandler,
  type LanguageClientOptions,
  type StaticFeature,
} from "vscode-languageclient/node";
import { Approvals } from "./approvals";
import type { Command } from "./commands";
import { afterDeath, isGone, mismatch, PATTERNS, toolsOf, words } from "./pure";
import { Runs } from "./runs";
import { findServer, type ServerCommand } from "./server";
import { registerMcp } from "./mcp";
import { registerTasks } from "./tasks";
import { Tests } from "./tests";
import { Tools } from "./tools";

const t = vscode.l10n.t;

export interface Main {
  start(): void;
  stop(): Promise<void>;
  command(command: Command, args: unknown[]): unknown;
}

interface ServerStatus {
  health?: "ok" | "warning" | "error";
  quiescent?: boolean;
  message?: string;
}

function selector(): vscode.DocumentFilter[] {
  const settings = vscode.workspace.getConfiguration("tamis");
  const found: vscode.DocumentFilter[] = PATTERNS.map((pattern) => ({ scheme: "file", pattern }));
  found.push({ language: "tam" }, { language: "vcp" }, { language: "toolaction" });
  if (settings.get<boolean>("markdown.enable", true)) {
    found.push({ language: "markdown" }, { language: "plaintext" });
  }
  if (settings.get<boolean>("python.enable", false)) {
    found.push({ scheme: "file", language: "python" });
  }
  return found;
}

/** The log as the library traces into it: the setting decides what is traced, not the level of the log, which nobody looks for. */
function traced(log: vscode.LogOutputChannel): vscode.LogOutputChannel {
  const level = (): vscode.LogLevel =>
    vscode.workspace.getConfiguration("tamis").get<string>("trace.server", "off") === "off" ? vscode.LogLevel.Off : vscode.LogLevel.Trace;
  const changed: vscode.Event<vscode.LogLevel> = (listener) =>
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("tamis.trace") && listener(level()));
  return Object.create(log, {
    logLevel: { get: level },
    onDidChangeLogLevel: { value: changed },
    trace: { value: (text: string) => log.info(text) },
  }) as vscode.LogOutputChannel;
}

/** A request that the server's end was quicker than fails in silence, as one that it ended does: the editor hides what matters among many messages. */
class Client extends LanguageClient {
  override handleFailedRequest<T>(...given: Parameters<LanguageClient["handleFailedRequest"]>): T {
    const [type, token, error, otherwise, ...how] = given;
    if (error instanceof ResponseError && error.code === ErrorCodes.MessageWriteError) return otherwise as T;
    return super.handleFailedRequest(type, token, error, otherwise as T, ...how);
  }
}

/** What the client can do beyond the protocol. */
class Offered implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = {
      ...(capabilities.experimental as object | undefined),
      serverStatusNotification: true,
      tamis: { approval: "request", elicitation: true, forms: true, together: true, output: true, try: true },
    };
  }
  initialize(): void {}
  getState(): { kind: "static" } {
    return { kind: "static" };
  }
  clear(): void {}
}

/** The client of one window, until the window is closed. */
export function create(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Main {
  return new Session(context, log);
}

class Session implements Main {
  readonly serverLog = vscode.window.createOutputChannel("Tamis Language Server", { log: true });
  readonly output = vscode.window.createOutputChannel("Tamis Tool Output");
  readonly own: string;
  client: LanguageClient | undefined;
  server: ServerCommand | undefined;
  private readonly status: vscode.LanguageStatusItem;
  private readonly runs: Runs;
  private readonly approvals: Approvals;
  private readonly tests: Tests;
  private readonly tools: Tools;
  private changing: Promise<void> = Promise.resolve();
  private begun = false;
  private deaths: number[] = [];
  private version = "";
  /** What of the server does not fit; it stays said, whatever the server tells of its tools. */
  private wrong = "";

  constructor(
    readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
  ) {
    this.own = String(context.extension.packageJSON.version);
    this.status = vscode.languages.createLanguageStatusItem("tamis.status", selector());
    this.status.name = "Tamis";
    this.status.command = { command: "tamis.showServerLog", title: t("Show Log") };
    this.approvals = new Approvals();
    this.runs = new Runs(this, this.approvals);
    this.tests = new Tests(this);
    this.tools = new Tools(this, this.runs);
    context.subscriptions.push(
      this.serverLog,
      this.output,
      this.status,
      this.runs,
      this.tests,
      registerTasks(() => findServer(this.log)),
      registerMcp(context, () => findServer(this.log)),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.trusted()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        const names = ["path", "args", "interpreter", "importStrategy", "markdown", "python", "roots"];
        if (this.begun && names.some((name) => event.affectsConfiguration(`tamis.${name}`))) void this.restart();
      }),
    );
  }

  start(): void {
    void this.ready();
  }

  /** The running client; undefined where there is none, which was said. */
  async ready(): Promise<LanguageClient | undefined> {
    if (!this.begun) {
      this.begun = true;
      this.queue(() => this.begin());
    }
    await this.changing;
    return this.client;
  }

  stop(): Promise<void> {
    return this.queue(() => this.end());
  }

  restart(): Promise<void> {
    this.begun = true;
    this.deaths = [];
    return this.queue(async () => {
      await this.end();
      await this.begin();
    });
  }

  command(command: Command, args: unknown[]): unknown {
    switch (command) {
      case "tamis.restart":
        return this.restart();
      case "tamis.showServerLog":
        return this.serverLog.show();
      case "tamis.showClientLog":
        return this.log.show();
      case "tamis.showToolOutput":
        return this.output.show(true);
      case "tamis.openWalkthrough":
        return this.walkthrough();
      case "tamis.try":
        return this.form(args[0]);
      case "tamis.runHere":
      case "tamis.runWithoutQuestions":
      case "tamis.dryRunHere":
      case "tamis.rerun":
      case "tamis.cancelRun":
      case "tamis.history":
      case "tamis.clearHistory":
        return this.runs.command(command);
      default:
        return this.tools.command(command, args);
    }
  }

  /** The first walkthrough that a window of VS Code 1.104 opens is its own: it hears of those of extensions when it opens one. */
  private async walkthrough(): Promise<void> {
    for (let times = 0; times < 2; times += 1) {
      await vscode.commands.executeCommand("workbench.action.openWalkthrough", `${this.context.extension.id}#tamis.start`, false);
    }
  }

  /** A form for the arguments of a tool, of another file of the package: few sessions open one. */
  private form(place: unknown): Promise<void> {
    const named = typeof place === "object" && place !== null ? (place as { toolId?: unknown }).toolId : undefined;
    const { tryTool } = require("./form.js") as typeof import("./form");
    return tryTool(this, typeof named === "string" ? named : undefined);
  }

  /** Asks the server; what it refuses is shown in its words. */
  async ask<T>(method: string, params: unknown): Promise<T | undefined> {
    const client = await this.ready();
    if (client === undefined) return undefined;
    try {
      return await client.sendRequest<T>(method, params);
    } catch (error) {
      void this.tell(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  /** Says what went wrong; with a button, because what has none is cut off behind its first line, and the remedy stands last. */
  async tell(why: string, log: vscode.OutputChannel = this.serverLog): Promise<void> {
    const show = t("Show Log");
    if ((await vscode.window.showWarningMessage(`Tamis: ${words(why, 1000)}`, show)) === show) log.show();
  }

  /** Facts about the machine and the session, for reports. */
  async facts(): Promise<string[]> {
    const health = this.client === undefined ? undefined : await this.ask<Record<string, unknown>>("server/health", {});
    return [
      `- extension ${this.own}, server ${this.version || "none"}, VS Code ${vscode.version}, ${process.platform} ${process.arch}`,
      `- program: \`${this.server === undefined ? "none" : [this.server.command, ...this.server.args].join(" ")}\``,
      `- trusted: ${String(vscode.workspace.isTrusted)}, folders: ${vscode.workspace.workspaceFolders?.length ?? 0}, remote: ${vscode.env.remoteName ?? "no"}`,
      `- status: ${this.status.text}${this.status.detail ? ` (${this.status.detail})` : ""}`,
      ...(health === undefined ? [] : ["", "```json", JSON.stringify(health, null, 2), "```"]),
    ];
  }

  // The server's life

  private async begin(): Promise<void> {
    const server = findServer(this.log);
    this.server = server;
    if (server === undefined) {
      this.show(t("not found"), vscode.LanguageStatusSeverity.Error);
      void this.tools.missing();
      return;
    }
    const options: LanguageClientOptions = {
      documentSelector: selector() as NonNullable<LanguageClientOptions["documentSelector"]>,
      outputChannel: this.serverLog,
      traceOutputChannel: traced(this.log),
      initializationOptions: { trusted: vscode.workspace.isTrusted, settings: this.first() },
      errorHandler: this.restartPolicy(),
      middleware: {
        executeCommand: (command, args, next) => this.runs.execute(command, args as unknown[], next),
        window: {
          showDocument: (params, token, next) => this.runs.showDocument(params, async () => next(params, token)),
        },
      },
    };
    const client = new Client("tamis", "Tamis Language Server", { command: server.command, args: server.args }, options);
    client.registerFeature(new Offered());
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) this.greet(client);
      else if (newState === State.Stopped) this.show(t("stopped"), vscode.LanguageStatusSeverity.Warning);
    });
    client.onNotification("experimental/serverStatus", (told: ServerStatus) => this.told(told));
    this.runs.listen(client);
    this.approvals.listen(client);
    this.tests.listen(client);
    this.client = client;
    this.status.busy = true;
    try {
      await client.start();
      this.tests.refresh();
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`);
      this.show(t("did not start"), vscode.LanguageStatusSeverity.Error);
    }
    this.status.busy = false;
  }

  /** What the server has to know before it reads anything; it asks for the rest. */
  private first(): Record<string, unknown> {
    const settings = vscode.workspace.getConfiguration("tamis");
    return { roots: settings.get<string[]>("roots", []), exclude: settings.get<string[]>("exclude", []) };
  }

  private async end(): Promise<void> {
    const stopped = this.client;
    this.client = undefined;
    try {
      await stopped?.dispose();
    } catch {
      // A server that is dead already cannot be stopped.
    }
  }

  /** A restart only where the workspace, now that it is trusted, names another program. */
  private trusted(): Promise<void> {
    return this.queue(async () => {
      if (!this.begun) return;
      if (this.client === undefined || JSON.stringify(findServer(this.log)) !== JSON.stringify(this.server)) {
        await this.end();
        await this.begin();
      } else {
        await this.client.sendNotification("workspace/didChangeConfiguration", { settings: { tamis: { trusted: true } } });
      }
    });
  }

  private restartPolicy(): ErrorHandler {
    return {
      error: (error, _message, count) =>
        isGone(error) ? { action: ErrorAction.Continue, handled: true } : { action: (count ?? 0) <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown },
      closed: () => {
        const { deaths, restart } = afterDeath(this.deaths, Date.now());
        this.deaths = deaths;
        if (restart) {
          this.log.warn(`the server ended; start ${deaths.length} of 4`);
          return { action: CloseAction.Restart };
        }
        void this.gaveUp(deaths.length);
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  private async gaveUp(times: number): Promise<void> {
    const [log, again, report] = [t("Show Log"), t("Restart"), t("Report Issue")];
    const text = t("Tamis: the server ended {0} times in three minutes.", times);
    const choice = await vscode.window.showErrorMessage(text, log, again, report);
    if (choice === log) this.serverLog.show();
    else if (choice === again) await this.restart();
    else if (choice === report) await this.tools.command("tamis.reportIssue", []);
  }

  /** Starts and stops follow each other; two at once would leave a server behind. */
  private queue(work: () => Promise<void>): Promise<void> {
    this.changing = this.changing.then(work, work);
    return this.changing;
  }

  // Status

  private greet(client: LanguageClient): void {
    const result = client.initializeResult;
    const experimental = result?.capabilities.experimental as { tamis?: { rpc?: unknown } } | undefined;
    this.version = result?.serverInfo?.version ?? "";
    const wrong = (this.wrong = mismatch(result?.serverInfo?.version, experimental?.tamis?.rpc, this.own, t));
    this.log.info(`server ${this.version || "(no version)"}${wrong === "" ? "" : `: ${wrong}`}`);
    this.show(this.version, wrong === "" ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning);
    this.status.detail = wrong || this.server?.command;
  }

  private told(told: ServerStatus): void {
    this.status.busy = told.quiescent === false;
    const warns = told.health !== undefined && told.health !== "ok";
    const notes = [this.wrong, warns ? told.message : undefined].filter(Boolean);
    const { Information, Warning } = vscode.LanguageStatusSeverity;
    this.show(`${this.version}${toolsOf(told.message, t)}`, notes.length > 0 ? Warning : Information);
    this.status.detail = notes.length > 0 ? notes.join("; ") : this.server?.command;
  }

  private show(text: string, severity: vscode.LanguageStatusSeverity): void {
    this.status.text = `tamis ${text}`;
    this.status.severity = severity;
  }
}

export type { Session };
