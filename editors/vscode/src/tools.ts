// Commands about tools that are no runs: new ones, import and export, prompts, approvals, reports. The program does the work.

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import type { Command } from "./commands";
import type { Session } from "./main";
import { denials, words } from "./pure";
import type { Runs } from "./runs";
import { onDisk } from "./server";

const t = vscode.l10n.t;
const TARGETS = ["mcp", "openai", "openai-strict", "anthropic", "gemini", "vcp", "caiu"];
const KINDS = ["mcp", "openai", "vcp", "openapi", "python", "comfyui", "n8n"];
const ISSUES = "https://github.com/tamis/tamis/issues/new";

export class Tools {
  constructor(
    private readonly session: Session,
    private readonly runs: Runs,
  ) {}

  async command(command: Command, _args: unknown[]): Promise<unknown> {
    switch (command) {
      case "tamis.debugInformation":
        return this.text("markdown", ["# Tamis", "", ...(await this.session.facts())].join("\n"));
      case "tamis.reportIssue":
        return this.report();
      case "tamis.selectServer":
        return this.select();
      case "tamis.previewPromptHere":
        return this.preview();
      case "tamis.convertHere":
        return this.here("tamis.convert");
      case "tamis.copyHere":
        return this.here("tamis.copyAs");
      case "tamis.newManifest":
        return this.create();
      case "tamis.newManifestFromFunction":
        return this.fromFunction();
      case "tamis.import":
        return this.bring();
      case "tamis.export":
        return this.give();
      case "tamis.suggestPermissions":
        return this.suggest();
      case "tamis.manageApprovals":
        return this.approvals();
      default:
        return undefined;
    }
  }

  /** There is no program: what can be done. */
  async missing(): Promise<void> {
    const [choose, settings, log] = [t("Choose…"), t("Open Settings"), t("Show Log")];
    const choice = await vscode.window.showErrorMessage(
      t("Tamis: the program 'tamis' was not found. Run 'pip install .' in a clone of Tamis, or set tamis.path to its .venv/bin/tamis."),
      choose,
      settings,
      log,
    );
    if (choice === choose) await this.select();
    else if (choice === settings) await vscode.commands.executeCommand("workbench.action.openSettings", "tamis.path");
    else if (choice === log) this.session.log.show();
  }

  private async select(): Promise<void> {
    const [file] = (await vscode.window.showOpenDialog({ title: t("The program tamis"), canSelectMany: false })) ?? [];
    if (file === undefined) return;
    await vscode.workspace.getConfiguration("tamis").update("path", file.fsPath, vscode.ConfigurationTarget.Global);
  }

  private async report(): Promise<void> {
    const body = ["What happened, and what did you expect?", "", ...(await this.session.facts()).slice(0, 4)].join("\n");
    await vscode.env.openExternal(vscode.Uri.parse(`${ISSUES}?body=${encodeURIComponent(body)}`));
  }

  /** A command of the server about the call under the cursor. */
  private async here(command: string): Promise<unknown> {
    const place = this.runs.place();
    if (place === undefined || (await this.session.ready()) === undefined) return undefined;
    return vscode.commands.executeCommand(command, place);
  }

  private async preview(): Promise<void> {
    const uri = vscode.window.activeTextEditor?.document.uri.toString();
    const protocol = await vscode.window.showQuickPick(["vcp", "tam", "action", "json"], { title: t("Preview the prompt in") });
    if (uri === undefined || protocol === undefined) return;
    await this.session.ask("workspace/executeCommand", { command: "tamis.previewPrompt", arguments: [{ uri, protocol }] });
  }

  private root(): vscode.Uri | undefined {
    const active = vscode.window.activeTextEditor?.document.uri;
    const around = active?.scheme === "file" ? vscode.workspace.getWorkspaceFolder(active) : undefined;
    const folder = around ?? onDisk()[0];
    if (folder === undefined) void vscode.window.showWarningMessage(t("Tamis: open a folder first."));
    return folder?.uri;
  }

  /** Runs the program; what it says when it fails is shown. */
  private async program(root: vscode.Uri, args: string[]): Promise<string | undefined> {
    await this.session.ready();
    const server = this.session.server;
    if (server === undefined) return undefined;
    this.session.log.info(`${server.command} ${args.join(" ")}`);
    return new Promise((resolve) => {
      execFile(server.command, [...server.before, ...args], { cwd: root.fsPath, maxBuffer: 16 * 1024 * 1024 }, (error, out, said) => {
        if (said !== "") this.session.log.info(said);
        if (error !== null) void this.session.tell(said.trim().replace(/^tamis: /gm, "") || error.message, this.session.log);
        resolve(error === null ? out : undefined);
      });
    });
  }

  private async create(): Promise<void> {
    const root = this.root();
    if (root === undefined) return;
    const name = await vscode.window.showInputBox({
      title: t("New tool: its id"),
      placeHolder: "notes:append",
      validateInput: (value) => (/^[a-z][\w-]*:[\w-]+$/i.test(value) ? undefined : t("An id is namespace:name, such as notes:append")),
    });
    if (name === undefined) return;
    const language = await vscode.window.showQuickPick(["python", "nodejs", "bun"], { title: t("The language of its script") });
    if (language === undefined) return;
    const made = await this.program(root, ["new", name, "--language", language]);
    if (made === undefined) return;
    const folder = name.split(":")[1] ?? name;
    const [manifest] = await vscode.workspace.findFiles(new vscode.RelativePattern(root, `**/${folder}*/*.tool.json`), undefined, 1);
    if (manifest !== undefined) await vscode.window.showTextDocument(manifest);
  }

  private async fromFunction(): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    if (document?.languageId !== "python") {
      void vscode.window.showInformationMessage(t("Tamis: open the Python file with the function first."));
      return;
    }
    await document.save();
    await this.imported("python", document.uri);
  }

  private async bring(): Promise<void> {
    const kind = await vscode.window.showQuickPick(KINDS, { title: t("Import tools from") });
    if (kind === undefined) return;
    const [file] = (await vscode.window.showOpenDialog({ title: t("Import tools from"), canSelectMany: false })) ?? [];
    if (file !== undefined) await this.imported(kind, file);
  }

  private async imported(kind: string, file: vscode.Uri): Promise<void> {
    const root = this.root();
    if (root === undefined) return;
    const out = await this.program(root, ["import", kind, file.fsPath, "--out", root.fsPath]);
    if (out !== undefined) void vscode.window.showInformationMessage(words(out.trim()) || t("Imported."));
  }

  private async give(): Promise<void> {
    const root = this.root();
    const target = root && (await vscode.window.showQuickPick(TARGETS, { title: t("Export the tools as") }));
    const out = target && (await this.program(root, ["export", target]));
    if (out) await this.text(out.startsWith("<") ? "xml" : "json", out);
  }

  private async suggest(): Promise<void> {
    const last = this.runs.history[0];
    const found = last === undefined ? [] : denials(last);
    if (found.length === 0) {
      const why = last === undefined ? t("Tamis: nothing was run yet.") : t("Tamis: the last run was refused nothing.");
      void vscode.window.showInformationMessage(why);
      return;
    }
    await this.text("markdown", [`# ${t("What the last run was refused")}`, "", ...found.map((line) => `- ${line}`)].join("\n"));
  }

  private async approvals(): Promise<void> {
    type Entry = { id: string; kind: string; toolId: string; version: string };
    const entries = (await this.session.ask<{ approvals: Entry[] }>("approval/list", {}))?.approvals;
    if (entries === undefined) return;
    if (entries.length === 0) {
      void vscode.window.showInformationMessage(t("Tamis: no answers hold."));
      return;
    }
    const items = entries.map((one) => ({ label: `${one.toolId} ${one.version}`, description: one.kind.replaceAll("_", " "), id: one.id }));
    const chosen = await vscode.window.showQuickPick(items, { canPickMany: true, title: t("Answers that hold: check those to take back") });
    for (const { id } of chosen ?? []) await this.session.ask("approval/revoke", { id });
  }

  private async text(language: string, content: string): Promise<void> {
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language, content }), { preview: true });
  }
}

