// Tasks: what `tamis check` and `tamis test` say, in the list of problems.

import * as vscode from "vscode";
import { onDisk, type ServerCommand } from "./server";

interface Definition extends vscode.TaskDefinition {
  command: "check" | "test";
  args?: string[];
}

export function registerTasks(find: () => ServerCommand | undefined): vscode.Disposable {
  const made = (definition: Definition, scope: vscode.WorkspaceFolder | vscode.TaskScope): vscode.Task | undefined => {
    const server = find();
    if (server === undefined) return undefined;
    const folder = typeof scope === "object" ? scope : onDisk()[0];
    const run = new vscode.ProcessExecution(server.command, [...server.before, definition.command, ...(definition.args ?? [])], {
      ...(folder === undefined ? {} : { cwd: folder.uri.fsPath }),
    });
    const task = new vscode.Task(definition, scope, definition.command, "tamis", run, "$tamis");
    task.group = definition.command === "test" ? vscode.TaskGroup.Test : vscode.TaskGroup.Build;
    return task;
  };
  return vscode.tasks.registerTaskProvider("tamis", {
    provideTasks: () =>
      onDisk().flatMap((folder) =>
        (["check", "test"] as const).flatMap((command) => made({ type: "tamis", command }, folder) ?? []),
      ),
    resolveTask: (task) => made(task.definition as Definition, task.scope as vscode.WorkspaceFolder),
  });
}
