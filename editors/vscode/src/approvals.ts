// Asking before a call runs: a toast with the two answers that are given most, and a list with all of them. Leaving either is no refusal.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import {
  CANCELLED, hostOf, readArguments, reply, shortened, typed, words, wrongWith,
  type ApprovalReply, type ApprovalRequest, type Elicitation, type FormField, type FormValue,
} from "./pure";

const t = vscode.l10n.t;
const SCHEME = "tamis-approval";
/** Questions of one text come one after the other; so long the first waits for the others. */
const GATHER_MS = 150;

interface Asked {
  request: ApprovalRequest;
  answer: (reply: ApprovalReply) => void;
}

/** A value that a field can have; none for leaving it out. */
type Choice = vscode.QuickPickItem & { value?: FormValue };
type Step = { value: FormValue | undefined } | "back";

/** What there is to choose from; undefined for a field that is typed into. */
function choicesOf(field: FormField): Choice[] | undefined {
  const choices: Choice[] | undefined =
    field.type === "boolean"
      ? [{ label: t("yes"), value: true }, { label: t("no"), value: false }]
      : field.options?.map(({ value, title }) => ({ label: words(title), value }));
  return choices === undefined || field.required || field.type === "array" ? choices : [...choices, { label: `$(circle-slash) ${t("Leave out")}` }];
}

/** The risk of a call, in the user's language. */
function riskOf(request: ApprovalRequest): string {
  return { low: t("low"), medium: t("medium"), high: t("high") }[request.risk];
}

function isOf(value: FormValue | undefined, choice: Choice): boolean {
  return Array.isArray(value) ? value.includes(choice.value as string) : value === choice.value;
}

/** A value in the words of its field. */
function told(field: FormField, value: FormValue | undefined): string {
  if (value === undefined) return t("left out");
  const labels = choicesOf(field)?.filter((choice) => isOf(value, choice)).map((choice) => choice.label);
  return labels === undefined ? words(String(value)) : labels.join(", ");
}

export class Approvals {
  private silent = 0;
  private readonly details = new Map<string, string>();
  private readonly gathered = new Map<string, Asked[]>();
  private readonly settled = new Set<string>();
  private readonly open = new Map<string, vscode.QuickInput>();
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
    const text = t("Run {0}? Risk: {1}. Arguments: {2}", words(request.tool), riskOf(request), words(request.argsPreview, 160));
    const choice = await vscode.window.showWarningMessage(text, allow, deny, more);
    if (choice === allow) return reply(request, "allow_once");
    if (choice === deny) return reply(request, "reject_once");
    return choice === more && !this.settled.has(request.approvalId) ? this.all(request) : CANCELLED;
  }

  /** A question of a tool's MCP server: leaving it is no refusal, and nothing is answered by default. */
  private async question(request: ApprovalRequest, asked: Elicitation): Promise<ApprovalReply> {
    const [answer, decline] = [t("Answer…"), t("Decline")];
    const [server, message] = [words(asked.server, 100), words(asked.message, 1000)];
    const text = t("The MCP server '{0}' asks while {1} runs: {2}", server, words(request.tool), message);
    const choice = await vscode.window.showWarningMessage(text, answer, decline);
    if (choice === decline) return reply(request, "reject_once");
    if (choice !== answer) return CANCELLED;
    if (asked.url !== undefined) return this.address(request, asked.url.url, text);
    if (asked.form !== undefined) return this.form(request, server, asked.form);
    const items = request.options.map((option) => ({ label: words(option.label), id: option.optionId }));
    const chosen = await this.pick(request, items, words(asked.field ?? server), message);
    return chosen === undefined ? CANCELLED : { outcome: "selected", optionId: chosen };
  }

  /** An address is shown whole before it is opened. */
  private async address(request: ApprovalRequest, url: string, text: string): Promise<ApprovalReply> {
    const [host, id] = [hostOf(url), request.approvalId];
    if (host === undefined) return reply(request, "reject_once");
    if (this.settled.has(id)) return CANCELLED;
    const [open, decline] = [t("Open"), t("Decline")];
    const options = { modal: true, detail: `${url}\n\n${text}` };
    const choice = await vscode.window.showWarningMessage(t("Open an address of {0}?", host), options, open, decline);
    if (choice === decline) return reply(request, "reject_once");
    // The text itself: a Uri would be written in another way than what was shown.
    const opened = choice === open && !this.settled.has(id) && (await vscode.env.openExternal(url as unknown as vscode.Uri));
    return opened ? reply(request, "allow_once") : CANCELLED;
  }

  /** A form, one step for each field, and one that shows the whole answer: nothing is sent before it. */
  private async form(request: ApprovalRequest, server: string, fields: FormField[]): Promise<ApprovalReply> {
    const values = fields.map((field) => field.default);
    for (let [at, whole] = [0, false]; ; ) {
      const field = fields[at];
      if (field !== undefined) {
        const step = await this.step(request, `${server}: ${words(field.title, 100)}`, field, values[at], at, fields.length + 1);
        if (step === undefined) return CANCELLED;
        if (step !== "back") values[at] = step.value;
        at = whole ? fields.length : step === "back" ? at - 1 : at + 1;
        continue;
      }
      whole = true;
      // A value has a line of its own: no title pushes it out of sight.
      const rows = fields.map((one, id) => ({ label: words(one.title, 100), detail: told(one, values[id]), id: String(id) }));
      const send = { label: `$(check) ${t("Send to {0}", server)}`, id: "#send" };
      const decline = { label: `$(x) ${t("Decline")}`, id: "#decline" };
      const chosen = await this.pick(request, [send, ...rows, decline], server, t("or choose what to change"));
      if (chosen === undefined) return CANCELLED;
      if (chosen === "#decline") return reply(request, "reject_once");
      const given = fields.flatMap((one, id) => (values[id] === undefined ? [] : [[one.name, values[id]]]));
      if (chosen === "#send") return { ...reply(request, "allow_once"), content: Object.fromEntries(given) } as ApprovalReply;
      at = Number(chosen);
    }
  }

  private step(request: ApprovalRequest, title: string, field: FormField, value: FormValue | undefined, at: number, of: number): Promise<Step | undefined> {
    const about = [field.error, field.description, field.required ? "" : t("may be left out")].map((text) => words(text)).filter(Boolean).join(" · ");
    const choices = choicesOf(field);
    const input = choices === undefined ? vscode.window.createInputBox() : vscode.window.createQuickPick<Choice>();
    input.step = at + 1;
    input.totalSteps = of;
    input.buttons = at > 0 ? [vscode.QuickInputButtons.Back] : [];
    return this.present<Step>(request, input, title, (done) => {
      input.onDidTriggerButton(() => done("back"));
      const take = (found: FormValue | undefined) => {
        const wrong = wrongWith(field, found, t);
        if (wrong === "") done({ value: found });
        return wrong;
      };
      if ("items" in input) {
        const many = field.type === "array";
        input.placeholder = about;
        input.canSelectMany = many;
        input.items = choices ?? [];
        const given = input.items.filter((choice) => isOf(value, choice));
        if (many) input.selectedItems = given;
        else input.activeItems = given;
        input.onDidAccept(() => {
          const found = input.selectedItems.map((choice) => choice.value as string);
          const none = many ? !field.required && found.length === 0 : false;
          if (many || found.length > 0) input.placeholder = take(none ? undefined : many ? found : found[0]) || about;
        });
        return;
      }
      input.prompt = about;
      input.value = value === undefined ? "" : String(value);
      input.onDidChangeValue((text) => {
        input.validationMessage = text === "" ? "" : wrongWith(field, typed(field, text), t);
      });
      input.onDidAccept(() => {
        input.validationMessage = take(typed(field, input.value));
      });
    });
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
    title = t("Run {0}? Risk: {1}", request.tool, riskOf(request)),
    placeholder = shortened(request.argsPreview),
  ): Promise<string | undefined> {
    const picker = vscode.window.createQuickPick<vscode.QuickPickItem & { id: string }>();
    picker.placeholder = placeholder;
    picker.items = items;
    return this.present<string>(request, picker, title, (done) => {
      picker.onDidAccept(() => picker.selectedItems[0] && done(picker.selectedItems[0].id));
    });
  }

  /** Shows an input until it is `done`, left, or its question answered elsewhere. */
  private present<T>(request: ApprovalRequest, input: vscode.QuickInput, title: string, begin: (done: (value: T) => void) => void): Promise<T | undefined> {
    const id = request.approvalId;
    return new Promise((resolve) => {
      input.title = title;
      input.ignoreFocusOut = true;
      begin((value) => {
        resolve(value);
        input.hide();
      });
      input.onDidHide(() => {
        // The next one may be there already.
        if (this.open.get(id) === input) this.open.delete(id);
        resolve(undefined);
        input.dispose();
      });
      if (this.settled.has(id)) return resolve(undefined);
      this.open.set(id, input);
      input.show();
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
      label: words(request.tool),
      description: t("risk: {0}", riskOf(request)),
      detail: words(request.argsPreview, 160),
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
