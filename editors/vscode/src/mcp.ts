// The folder's tools for Copilot and others, by MCP: only where the user said so (`tamis.mcp.register`), and never in a folder that is not trusted.

import * as vscode from "vscode";
import { onDisk, type ServerCommand } from "./server";

/** Of newer versions of VS Code than the types that we build with. */
interface McpApi {
  lm?: { registerMcpServerDefinitionProvider?: (id: string, provider: unknown) => vscode.Disposable };
  McpStdioServerDefinition?: new (label: string, command: string, args: string[], env?: Record<string, string>, version?: string) => unknown;
}

export function registerMcp(
  context: vscode.ExtensionContext,
  find: () => ServerCommand | undefined,
  api: McpApi = vscode as unknown as McpApi,
): vscode.Disposable {
  const { lm, McpStdioServerDefinition: Definition } = api;
  if (lm?.registerMcpServerDefinitionProvider === undefined || Definition === undefined) return new vscode.Disposable(() => undefined);
  const changed = new vscode.EventEmitter<void>();
  const provider = {
    onDidChangeMcpServerDefinitions: changed.event,
    provideMcpServerDefinitions: (): unknown[] => {
      const wanted = vscode.workspace.getConfiguration("tamis").get<boolean>("mcp.register", false);
      const server = wanted && vscode.workspace.isTrusted ? find() : undefined;
      if (server === undefined) return [];
      return onDisk().map(
        (folder) =>
          new Definition(
            `Tamis: ${folder.name}`,
            server.command,
            [...server.before, "mcp", "--root", folder.uri.fsPath],
            {},
            String(context.extension.packageJSON.version),
          ),
      );
    },
  };
  let registered: vscode.Disposable;
  try {
    registered = lm.registerMcpServerDefinitionProvider("tamis.tools", provider);
  } catch {
    // 1.100 has the function under the name of a proposal, and throws.
    return changed;
  }
  return vscode.Disposable.from(
    changed,
    registered,
    vscode.workspace.onDidGrantWorkspaceTrust(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("tamis.mcp")) changed.fire();
    }),
  );
}
