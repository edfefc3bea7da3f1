// The Test Explorer: examples of tools and calls of texts, what each gave beside what it should give. What there is and how it is run is the server's.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Session } from "./main";

const t = vscode.l10n.t;

interface Found {
  id: string;
  label: string;
  kind: "module" | "test";
  parent?: string;
  textDocument: { uri: string };
  range: Range;
}

interface Range {
  start: { line: number; character: number };
  end: { line: number; character: number };
}

interface State {
  tag: "enqueued" | "started" | "passed" | "failed" | "skipped";
  message?: string;
  expected?: string;
  actual?: string;
  durationMs?: number;
  /** Where it is said what is expected. */
  range?: Range;
  permissions?: { granted?: unknown; denied?: { kind: string; value: string; reason: string }[] };
}

/** What examples covered of a manifest. */
interface Coverage {
  uri: string;
  details: { kind: string; name: string; range: Range; count: number }[];
}

export class Tests implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController("tamis", "Tamis");
  private readonly items = new Map<string, vscode.TestItem>();
  private run: { made: vscode.TestRun; end: () => void; traces: boolean } | undefined;
  private readonly covered = new WeakMap<vscode.FileCoverage, vscode.StatementCoverage[]>();
  private readonly continuous = new Set<vscode.TestRunRequest>();
  private readonly saved: vscode.Disposable;

  constructor(private readonly session: Session) {
    const begin = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> | void => {
      if (!request.continuous) return this.begin(request, token);
      this.continuous.add(request);
      token.onCancellationRequested(() => this.continuous.delete(request));
    };
    this.controller.createRunProfile(t("Run"), vscode.TestRunProfileKind.Run, begin, true, undefined, true);
    const tracing = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => this.begin(request, token, true);
    this.controller.createRunProfile(t("Run with Permission Trace"), vscode.TestRunProfileKind.Run, tracing);
    const covering = (request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> => this.begin(request, token, false, true);
    const coverage = this.controller.createRunProfile(t("Run with Coverage of Manifests"), vscode.TestRunProfileKind.Coverage, covering);
    coverage.loadDetailedCoverage = async (_run, file) => this.covered.get(file) ?? [];
    this.controller.refreshHandler = () => this.refresh();
    this.saved = vscode.workspace.onDidSaveTextDocument((document) => {
      const item = this.items.get(document.uri.toString());
      if (item === undefined) return;
      for (const request of this.continuous) {
        const wanted = request.include === undefined || request.include.some((one) => one === item || one.parent === item);
        if (wanted) void this.begin(new vscode.TestRunRequest(request.include ?? [item], request.exclude), undefined);
      }
    });
  }

  dispose(): void {
    this.saved.dispose();
    this.controller.dispose();
  }

  listen(client: LanguageClient): void {
    client.onNotification("experimental/discoveredTests", (told: { tests: Found[] }) => this.show(told.tests));
    client.onNotification("experimental/changeTestState", (told: { testId: string; state: State }) => this.state(told.testId, told.state));
    client.onNotification("experimental/testCoverage", (told: Coverage) => this.cover(told));
    client.onNotification("experimental/endRunTest", () => this.run?.end());
  }

  async refresh(): Promise<void> {
    const found = await this.session.client?.sendRequest<{ tests: Found[] }>("experimental/discoverTest", {}).catch(() => undefined);
    if (found !== undefined) this.show(found.tests);
  }

  private show(tests: Found[]): void {
    const convert = this.session.client?.protocol2CodeConverter;
    if (convert === undefined) return;
    this.items.clear();
    const tops: vscode.TestItem[] = [];
    for (const one of tests) {
      const uri = convert.asUri(one.textDocument.uri);
      const item = this.controller.createTestItem(one.id, one.label, uri);
      item.range = convert.asRange(one.range as never);
      this.items.set(one.kind === "module" ? uri.toString() : one.id, item);
      if (one.kind === "module") {
        item.description = vscode.workspace.asRelativePath(uri);
        tops.push(item);
      } else {
        tops.at(-1)?.children.add(item);
      }
    }
    this.controller.items.replace(tops);
  }

  private async begin(request: vscode.TestRunRequest, token: vscode.CancellationToken | undefined, traces = false, coverage = false): Promise<void> {
    const client = this.session.client;
    if (client === undefined || this.run !== undefined) return;
    const made = this.controller.createTestRun(request);
    const ended = new Promise<void>((end) => (this.run = { made, end, traces }));
    const abort = token?.onCancellationRequested(() => void client.sendNotification("experimental/abortRunTest"));
    const names = (items: readonly vscode.TestItem[] | undefined): string[] | undefined => items?.map((item) => item.id);
    try {
      await client.sendRequest("experimental/runTest", { include: names(request.include), exclude: names(request.exclude), coverage });
      await ended;
    } catch (error) {
      const message = new vscode.TestMessage(error instanceof Error ? error.message : String(error));
      request.include?.forEach((item) => made.errored(item, message));
    } finally {
      abort?.dispose();
      made.end();
      this.run = undefined;
    }
  }

  private cover(told: Coverage): void {
    const convert = this.session.client?.protocol2CodeConverter;
    if (convert === undefined) return;
    const parts = told.details.map(({ range: { start, end }, count }) => {
      const range = new vscode.Range(start.line, start.character, end.line, end.character);
      return new vscode.StatementCoverage(count, range);
    });
    const file = vscode.FileCoverage.fromDetails(convert.asUri(told.uri), parts);
    this.covered.set(file, parts);
    this.run?.made.addCoverage(file);
  }

  private state(id: string, state: State): void {
    const item = this.items.get(id);
    const made = this.run?.made;
    if (item === undefined || made === undefined) return;
    if (this.run?.traces && state.permissions !== undefined) {
      const { granted, denied = [] } = state.permissions;
      const refused = denied.map((one) => `\r\n  refused: ${one.kind} ${one.value} (${one.reason})`).join("");
      made.appendOutput(`${item.label}\r\n  granted: ${JSON.stringify(granted)}${refused}\r\n`);
    }
    if (state.tag === "failed") {
      const text = state.message ?? "";
      const message =
        state.expected === undefined
          ? new vscode.TestMessage(text)
          : vscode.TestMessage.diff(t("The output is not the expected one"), state.expected, state.actual ?? "");
      const place = state.range === undefined ? item.range : this.session.client?.protocol2CodeConverter.asRange(state.range as never);
      if (item.uri !== undefined && place !== undefined) message.location = new vscode.Location(item.uri, place);
      made.appendOutput(`${item.label}: ${text.replaceAll("\n", "\r\n")}\r\n`);
      made.failed(item, message, state.durationMs);
    } else if (state.tag === "passed") {
      made.passed(item, state.durationMs);
    } else {
      made[state.tag](item);
    }
  }
}
