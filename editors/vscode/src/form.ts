// Try…: a form for the arguments of a tool, which runs it or writes the call. Loaded when it is asked for.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { argumentsOf, fieldsOf, page, without, writable, type Field } from "./formPage";
import type { Session } from "./main";

const t = vscode.l10n.t;

interface Summary {
  toolId: string;
  description: string;
}

interface Result {
  status: string;
  durationMs: number;
  output?: unknown;
  error?: { type: string; message: string };
  observation: string;
}

interface Said {
  kind: "run" | "write";
  written: Record<string, unknown>;
}

/** Opens the form of a tool; which one is asked where nobody says. */
export async function tryTool(session: Session, toolId: string | undefined): Promise<void> {
  const chosen = toolId ?? (await choose(session));
  const found = chosen && (await session.ask<{ definition: Record<string, unknown> }>("tool/describe", { toolId: chosen }));
  if (!chosen || !found) return;
  const editor = vscode.window.activeTextEditor;
  const fields = fieldsOf(found.definition["parameters"]);
  const panel = vscode.window.createWebviewPanel("tamis.try", t("Try {0}", chosen), vscode.ViewColumn.Beside, {
    enableScripts: true,
    enableForms: false,
    localResourceRoots: [],
    retainContextWhenHidden: true,
  });
  panel.webview.onDidReceiveMessage((said: Said) => answer(session, panel.webview, chosen, fields, said, editor));
  const words = { run: t("Run"), write: t("Write the Call"), none: t("not given"), needed: t("needed"), untrusted: t("Trust the workspace to run") };
  const title = String(found.definition["displayName"] ?? chosen);
  const nonce = randomBytes(16).toString("hex");
  panel.webview.html = page(`${title} (${chosen})`, String(found.definition["description"] ?? ""), fields, nonce, words, vscode.workspace.isTrusted);
}

async function choose(session: Session): Promise<string | undefined> {
  const tools = (await session.ask<{ tools: Summary[] }>("tool/list", {}))?.tools;
  const items = tools?.map((one) => ({ label: one.toolId, detail: one.description }));
  return items && (await vscode.window.showQuickPick(items, { title: t("Try a tool"), matchOnDetail: true }))?.label;
}

async function answer(
  session: Session,
  view: vscode.Webview,
  toolId: string,
  fields: readonly Field[],
  said: Said,
  editor: vscode.TextEditor | undefined,
): Promise<void> {
  const words: Record<string, string> = { needed: t("needed"), whole: t("a whole number"), number: t("a number") };
  const { args, wrong } = argumentsOf(fields, said.written);
  if (Object.keys(wrong).length > 0) {
    void view.postMessage({ wrong: Object.fromEntries(Object.entries(wrong).map(([name, text]) => [name, words[text] ?? text])) });
    return;
  }
  if (said.kind === "write") {
    const calls = [{ toolId, args: writable(fields, args) }];
    const made = await session.ask<{ text: string }>("tool/convert", { calls, to: "action" });
    if (made !== undefined) await write(made.text, editor);
    void view.postMessage({});
    return;
  }
  void view.postMessage({ busy: true, text: t("Running") });
  const result = await session.ask<Result>("tool/execute", { toolId, args });
  void view.postMessage({ text: result === undefined ? "" : without(shown(result), fields, args) });
}

function shown(result: Result): string {
  const head = `${result.status === "success" ? "✓" : "✗"} ${result.status}, ${Math.round(result.durationMs)} ms`;
  const body = result.error === undefined ? (JSON.stringify(result.output, null, 2) ?? "") : `${result.error.type}: ${result.error.message}`;
  return `${head}\n${body}`;
}

/** Behind the cursor of the text that was open, or into a new one. */
async function write(text: string, editor: vscode.TextEditor | undefined): Promise<void> {
  const open = editor !== undefined && ["markdown", "plaintext", "toolaction"].includes(editor.document.languageId) ? editor : undefined;
  if (open === undefined || open.document.isClosed) {
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: "markdown", content: `${text}\n` }), vscode.ViewColumn.One);
    return;
  }
  const shownEditor = await vscode.window.showTextDocument(open.document, open.viewColumn);
  const line = shownEditor.document.lineAt(shownEditor.selection.end.line);
  const before = line.text.trim() === "" ? "" : "\n\n";
  await shownEditor.edit((edit) => edit.insert(line.range.end, `${before}${text}\n`));
}
