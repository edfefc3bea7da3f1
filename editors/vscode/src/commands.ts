// The commands of the palette. None has the id of a command of the server: vscode-languageclient registers those for all clients.

export const COMMANDS = [
  "tamis.restart",
  "tamis.showServerLog",
  "tamis.showClientLog",
  "tamis.showToolOutput",
  "tamis.debugInformation",
  "tamis.reportIssue",
  "tamis.selectServer",
  "tamis.runHere",
  "tamis.runWithoutQuestions",
  "tamis.dryRunHere",
  "tamis.rerun",
  "tamis.cancelRun",
  "tamis.history",
  "tamis.clearHistory",
  "tamis.previewPromptHere",
  "tamis.convertHere",
  "tamis.copyHere",
  "tamis.newManifest",
  "tamis.newManifestFromFunction",
  "tamis.import",
  "tamis.export",
  "tamis.suggestPermissions",
  "tamis.manageApprovals",
  "tamis.openWalkthrough",
  "tamis.try",
] as const;

export type Command = (typeof COMMANDS)[number];
