// Asking before a call runs: a toast with the two answers that are given most, and a list with all of them. Leaving either is no refusal.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { CANCELLED, readArguments, reply, shortened, type ApprovalReply, type ApprovalRequest } from "./pure";

const t = vscode.l10n.t;
const SCHEME = "tamis-approval";
/** Questions of one text come one after the other; so long the first waits for the others. */
const GATHER_MS = 150;

interface Asked {
  request: ApprovalRequest;
  answer: (reply: ApprovalReply) => void;
}

export class Approvals {
  private silent = 0;
  private readonly details = new Map<string, string>();
  private readonly gathered = new Map<string, Asked[]>();
  private readonly settled = new Set<string>();
  private readonly open = new Map<string, vscode.QuickPick<vscode.QuickPickItem>>();
  private provider: vscode.Disposable | undefined;

  listen(client: LanguageClient): void {
    this.provider ??= vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      provideTextDocumentContent: (uri) => this.details.get(uri.path.split("/")[1] ?? "") ?? "",
    });
    client.onRequest("tool/requestApproval", (request: ApprovalRequest) => this.ask(request));
    client.onNotification("tool/approvalResolved", (told: { approvalId: string }) => {
      this.settled.add(told.approvalId);
      this.details.delete(told.approvalId);
      this.open.get(told.approvalId)?.hide();
    });
  }

  /** Answers yes to what is asked while `work` goes on: the person said so before. */
  async silently<T>(work: () => Promise<T>): Promise<T> {
    this.silent += 1;
    try {
      return await work();
    } finally {
      this.silent -= 1;
    }
  }

  private ask(request: ApprovalRequest): Promise<ApprovalReply> {
    // What lets calls run unasked answers no server's question.
    if (request.elicitation !== undefined) return this.question(request, request.elicitation);
    if (this.silent > 0) return Promise.resolve(reply(request, "allow_once"));
    const { batch } = request;
    if (batch === undefined || batch.count < 2) return this.one(request);
    return new Promise((answer) => {
      const group = this.gathered.get(batch.id);
      if (group !== undefined) {
        group.push({ request, answer });
        return;
      }
      const asked = [{ request, answer }];
      this.gathered.set(batch.id, asked);
      setTimeout(() => {
        this.gathered.delete(batch.id);
        void (asked.length === 1 ? this.one(request).then(answer) : this.several(asked));
      }, GATHER_MS);
    });
  }

  private async one(request: ApprovalRequest): Promise<ApprovalReply> {
    const [allow, deny, more] = [t("Allow Once"), t("Deny"), t("More…")];
    const text = t("Run {0}? Risk: {1}. Arguments: {2}", request.tool, request.risk, shortened(request.argsPreview));
    const choice = await vscode.window.showWarningMessage(text, allow, deny, more);
    if (choice === allow) return reply(request, "allow_once");
    if (choice === deny) return reply(request, "reject_once");
    return choice === more && !this.settled.has(request.approvalId) ? this.all(request) : CANCELLED;
  }

  /** A question of a tool's MCP server: leaving it is no refusal, and nothing is answered by default. */
  private async question(request: ApprovalRequest, asked: { server: string; message: string; field?: string }): Promise<ApprovalReply> {
    const [answer, decline] = [t("Answer…"), t("Decline")];
    const text = t("The MCP server '{0}' asks while {1} runs: {2}", asked.server, request.tool, asked.message);
    const choice = await vscode.window.showWarningMessage(text, answer, decline);
    if (choice === decline) return reply(request, "reject_once");
    if (choice !== answer || this.settled.has(request.approvalId)) return CANCELLED;
    const items = request.options.map((option) => ({ label: option.label, id: option.optionId }));
    const chosen = await this.pick(request, items, asked.field ?? asked.server, asked.message);
    return chosen === undefined ? CANCELLED : { outcome: "selected", optionId: chosen };
  }

  /** Every answer, the arguments to look at and to change. */
  private async all(request: ApprovalRequest): Promise<ApprovalReply> {
    const items = request.options.map((option) => ({
      label: `${option.kind.startsWith("allow") ? "$(check)" : "$(x)"} ${option.label}`,
      kind: vscode.QuickPickItemKind.Default,
      id: option.optionId,
    }));
    const separator = { label: "", kind: vscode.QuickPickItemKind.Separator, id: "" };
    const details = { label: `$(open-preview) ${t("Details")}`, description: t("arguments and rights, as a document"), id: "#details" };
    const edit = { label: `$(edit) ${t("Edit arguments…")}`, description: t("run with others, once"), id: "#edit" };
    for (;;) {
      const chosen = await this.pick(request, [...items, separator, details, edit]);
      if (chosen === undefined) return CANCELLED;
      if (chosen === "#details") {
        await this.show(request);
        continue;
      }
      if (chosen !== "#edit") return { outcome: "selected", optionId: chosen };
      const text = await vscode.window.showInputBox({
        title: t("Arguments of {0}", request.tool),
        value: JSON.stringify(request.args),
        ignoreFocusOut: true,
        validateInput: (value) => {
          const read = readArguments(value, t);
          return typeof read === "string" ? read : undefined;
        },
      });
      const read = text === undefined ? "" : readArguments(text);
      const allowed = reply(request, "allow_once");
      if (typeof read !== "string" && allowed.outcome === "selected") return { ...allowed, editedArgs: read };
    }
  }

  private pick(
    request: ApprovalRequest,
    items: (vscode.QuickPickItem & { id: string })[],
    title = t("Run {0}? Risk: {1}", request.tool, request.risk),
    placeholder = shortened(request.argsPreview),
  ): Promise<string | undefined> {
    return new Promise((resolve) => {
      const picker = vscode.window.createQuickPick<vscode.QuickPickItem & { id: string }>();
      picker.title = title;
      picker.placeholder = placeholder;
      picker.ignoreFocusOut = true;
      picker.items = items;
      this.open.set(request.approvalId, picker);
      picker.onDidAccept(() => {
        resolve(picker.selectedItems[0]?.id);
        picker.hide();
      });
      picker.onDidHide(() => {
        this.open.delete(request.approvalId);
        resolve(undefined);
        picker.dispose();
      });
      picker.show();
    });
  }

  private async show(request: ApprovalRequest): Promise<void> {
    const { args, permissions, risk, tool, version } = request;
    this.details.set(request.approvalId, `${JSON.stringify({ tool, version, risk, args, permissions }, null, 2)}\n`);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${request.approvalId}/${tool.replaceAll("/", "∕")}?.json` });
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, "json");
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true, preserveFocus: true });
  }

  /** The questions of one text at once: what is checked may run. */
  private async several(asked: Asked[]): Promise<void> {
    const items = asked.map(({ request }) => ({
      label: request.tool,
      description: t("risk: {0}", request.risk),
      detail: shortened(request.argsPreview),
      picked: request.risk === "low",
      request,
    }));
    const chosen = await vscode.window.showQuickPick(items, {
      canPickMany: true,
      ignoreFocusOut: true,
      title: t("{0} calls ask: those that are checked run once, the others are denied", asked.length),
    });
    for (const { request, answer } of asked) {
      const allowed = chosen?.some((item) => item.request === request);
      answer(chosen === undefined ? CANCELLED : reply(request, allowed ? "allow_once" : "reject_once"));
    }
  }
}
