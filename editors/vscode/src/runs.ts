// Runs as a person sees them: progress that can be cancelled, a status with the time, output as it comes, the result beside the text, a history.

import * as vscode from "vscode";
import { WorkDoneProgress, type LanguageClient, type ShowDocumentParams, type ShowDocumentResult } from "vscode-languageclient/node";
import type { Approvals } from "./approvals";
import type { Session } from "./main";
import { header, runOf, seconds, words, type Told } from "./pure";

const t = vscode.l10n.t;
const RUNNING = new Set(["tamis.run", "tamis.dryRun", "tamis.runExample", "tamis.testExamples", "tamis.rerunLast"]);
const FORMS: readonly [string, string][] = [
  ["cli", "tamis call …"],
  ["mcp", "MCP tools/call"],
  ["openai", "OpenAI"],
  ["anthropic", "Anthropic"],
  ["action", "ACTION"],
  ["tam", "TAM"],
  ["vcp", "VCP"],
];
const KEPT = 100;

export interface Run extends Told {
  run: number;
  uri: string;
  kind: string;
  toolIds: string[];
  durationMs: number;
  when: string;
  resultUri: string;
}

type Next = (command: string, args: unknown[]) => unknown;
interface Place {
  uri?: string;
  range?: { start: { line: number; character: number } };
  [name: string]: unknown;
}

export class Runs implements vscode.Disposable {
  readonly history: Run[] = [];
  private readonly item = vscode.window.createStatusBarItem("tamis.run", vscode.StatusBarAlignment.Left, 0);
  private readonly going = new Map<string, vscode.CancellationTokenSource>();
  private readonly headed = new Set<string>();
  private title = "";
  private number = 0;
  private hiding: NodeJS.Timeout | undefined;

  constructor(
    private readonly session: Session,
    private readonly approvals: Approvals,
  ) {
    this.item.name = "Tamis: run";
  }

  dispose(): void {
    this.item.dispose();
    clearTimeout(this.hiding);
  }

  listen(client: LanguageClient): void {
    client.onNotification("tool/output", (told: { callId: string; text: string; truncated?: boolean }) => {
      if (!this.headed.has(told.callId)) {
        this.headed.add(told.callId);
        this.session.output.appendLine(header(this.title || "call", runOf(told.callId)));
      }
      this.session.output.append(told.text);
    });
  }

  /** What of the server's commands is done here. */
  execute(command: string, args: unknown[], next: Next): unknown {
    const place = (args[0] ?? {}) as Place;
    if (RUNNING.has(command)) return this.run(command, place);
    if (command === "tamis.showReferences") return this.references(place, next);
    if (command === "tamis.copyAs") return this.copy(place, next);
    if (command === "tamis.convert") return this.convert(place, next);
    return next(command, args);
  }

  /** Our documents open beside the text that they are about. */
  async showDocument(
    params: ShowDocumentParams,
    next: () => Promise<ShowDocumentResult | Error | null | undefined>,
  ): Promise<ShowDocumentResult> {
    const uri = vscode.Uri.parse(params.uri, true);
    if (uri.scheme !== "tamis-result" && uri.scheme !== "tamis-prompt") {
      const done = await next();
      return done && "success" in done ? done : { success: false };
    }
    const document = await vscode.workspace.openTextDocument(uri);
    const viewColumn = vscode.ViewColumn.Beside;
    await vscode.window.showTextDocument(document, { viewColumn, preview: true, preserveFocus: params.takeFocus !== true });
    return { success: true };
  }

  async command(command: string): Promise<unknown> {
    switch (command) {
      case "tamis.cancelRun":
        for (const source of this.going.values()) source.cancel();
        return undefined;
      case "tamis.rerun":
        return this.run("tamis.rerunLast", {});
      case "tamis.history":
        return this.choose();
      case "tamis.clearHistory":
        this.history.length = 0;
        return this.session.ask("workspace/executeCommand", { command: "tamis.clearResults", arguments: [] });
      case "tamis.runWithoutQuestions":
        return this.approvals.silently(() => this.atCursor("tamis.run"));
      default:
        return this.atCursor(command === "tamis.dryRunHere" ? "tamis.dryRun" : "tamis.run");
    }
  }

  /** The arguments of the block or example under the cursor. */
  place(): Place | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
      void vscode.window.showInformationMessage(t("Tamis: put the cursor into a call first."));
      return undefined;
    }
    const { start, end } = editor.selection;
    const range = { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } };
    return { uri: editor.document.uri.toString(), version: editor.document.version, range };
  }

  private async atCursor(command: string): Promise<unknown> {
    const place = this.place();
    if (place === undefined) return undefined;
    const manifest = /\.tool\.jsonc?$/.test(String(place.uri));
    return this.run(manifest ? (command === "tamis.run" ? "tamis.runExample" : command) : command, place);
  }

  private async run(command: string, place: Place): Promise<Run | undefined> {
    const client = await this.session.ready();
    if (client === undefined) return undefined;
    const token = `tamis-run-${(this.number += 1)}`;
    const source = new vscode.CancellationTokenSource();
    this.going.set(token, source);
    const began = Date.now();
    this.title = "";
    const show = (): void => this.shown(`$(sync~spin) ${this.title || t("Running")} ${seconds(Date.now() - began)}`, true);
    const clock = setInterval(show, 100);
    show();
    try {
      return await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: "Tamis", cancellable: true },
        async (progress, cancelled) => {
          cancelled.onCancellationRequested(() => source.cancel());
          const listening = client.onProgress(WorkDoneProgress.type, token, (value) => {
            if (value.kind === "begin") this.title = value.title.replace(/^(?:Running|Dry run of|Testing|正在运行|试运行|正在测试) /, "");
            const message = value.kind === "begin" ? value.title : value.message;
            if (value.kind !== "end" && message !== undefined) progress.report({ message });
          });
          try {
            const params = { command, arguments: [place], workDoneToken: token };
            const told = await client.sendRequest<Run>("workspace/executeCommand", params, source.token);
            this.ended(told);
            return told;
          } finally {
            listening.dispose();
          }
        },
      );
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.shown(`$(error) ${words(text, 60)}`, false);
      void this.session.tell(text);
      return undefined;
    } finally {
      clearInterval(clock);
      this.going.delete(token);
      void vscode.commands.executeCommand("setContext", "tamis.running", this.going.size > 0);
    }
  }

  private ended(told: Run): void {
    const good = told.status === undefined ? told.outcome.startsWith("✓") : told.status === "success";
    this.shown(`${good ? "$(check)" : "$(error)"} ${told.durationMs === undefined ? told.outcome : `${Math.round(told.durationMs)} ms`}`, false);
    if (told.run !== undefined) {
      this.history.unshift(told);
      this.history.length = Math.min(this.history.length, KEPT);
    }
    this.session.output.appendLine(told.outcome);
  }

  private shown(text: string, running: boolean): void {
    clearTimeout(this.hiding);
    this.item.text = text;
    this.item.command = running ? "tamis.cancelRun" : "tamis.history";
    this.item.tooltip = running ? t("Cancel what runs") : t("Show what was run");
    this.item.show();
    if (running) void vscode.commands.executeCommand("setContext", "tamis.running", true);
    else this.hiding = setTimeout(() => this.item.hide(), 10_000);
  }

  private async choose(): Promise<void> {
    if (this.history.length === 0) {
      void vscode.window.showInformationMessage(t("Tamis: nothing was run yet."));
      return;
    }
    const items = this.history.map((run) => ({
      label: run.outcome,
      description: new Date(run.when).toLocaleTimeString(),
      detail: vscode.workspace.asRelativePath(vscode.Uri.parse(run.uri)),
      run,
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: t("Tamis: what was run"), matchOnDetail: true });
    if (chosen !== undefined) {
      await this.session.ask("workspace/executeCommand", { command: "tamis.showResult", arguments: [{ run: chosen.run.run }] });
    }
  }

  // What an editor has a place of its own for

  private async references(place: Place, next: Next): Promise<void> {
    const found = (await next("tamis.showReferences", [{ ...place, show: false }])) as { locations: { uri: string; range: vscode.Range }[] };
    const client = this.session.client;
    if (client === undefined || place.uri === undefined) return;
    const at = place.range?.start ?? { line: 0, character: 0 };
    const locations = await Promise.all(
      found.locations.map(async (one) => client.protocol2CodeConverter.asLocation(one as never)),
    );
    const uri = client.protocol2CodeConverter.asUri(place.uri);
    await vscode.commands.executeCommand("editor.action.showReferences", uri, new vscode.Position(at.line, at.character), locations);
  }

  private async copy(place: Place, next: Next): Promise<void> {
    let to = place["to"] as string | undefined;
    if (to === undefined) {
      const items = FORMS.map(([form, label]) => ({ label, description: form }));
      to = (await vscode.window.showQuickPick(items, { title: t("Copy this call as") }))?.description;
    }
    if (to === undefined) return;
    const made = (await next("tamis.copyAs", [{ ...place, to, show: false }])) as { text: string };
    await vscode.env.clipboard.writeText(made.text);
    vscode.window.setStatusBarMessage(`$(check) ${t("Copied as {0}", to)}`, 5000);
    void vscode.window.showInformationMessage(t("Copied as {0}", to));
  }

  private async convert(place: Place, next: Next): Promise<unknown> {
    if (place["to"] !== undefined) return next("tamis.convert", [place]);
    const items = FORMS.slice(4).map(([form, label]) => ({ label, description: form }));
    const to = (await vscode.window.showQuickPick(items, { title: t("Convert this call to") }))?.description;
    return to === undefined ? undefined : next("tamis.convert", [{ ...place, to }]);
  }
}
