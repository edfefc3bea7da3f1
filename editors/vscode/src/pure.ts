// What is decided without an editor, so that `node --test` can show it: which files are ours, which versions fit, how things are worded.

/** Files that the server reads besides texts with calls. */
export const PATTERNS = [
  "**/*.tool.json",
  "**/*.tool.jsonc",
  "**/agent_profile.json",
  "**/*.agent_profile.json",
  "**/plugin-manifest.json",
  "**/tamis.toml",
] as const;
export const OWN_LANGUAGES: readonly string[] = ["tam", "vcp", "toolaction"];
const NAMES = /(?:\.tool\.jsonc?|(?:^|[\\/])(?:.*\.)?agent_profile\.json|(?:^|[\\/])plugin-manifest\.json|(?:^|[\\/])tamis\.toml)$/;

/** Whether a document is one for which the server has to be there, whatever else the folder holds. */
export function isOurs(path: string, languageId: string): boolean {
  return OWN_LANGUAGES.includes(languageId) || NAMES.test(path);
}

/** The scheme of a workspace that is nowhere on a disk, of the schemes of its folders; undefined where one is, or none is open. */
export function virtualScheme(schemes: readonly string[]): string | undefined {
  return schemes.includes("file") ? undefined : schemes[0];
}

/** Whether a server of a version can serve this extension: the same major version, and below 1 the same minor one. */
export function fits(server: string, own: string): boolean {
  const [major, minor] = server.split(".");
  const [ownMajor, ownMinor] = own.split(".");
  return major === ownMajor && (major !== "0" || minor === ownMinor);
}

/** Puts a sentence into the user's language, as `vscode.l10n.t` does; this one leaves it in English. */
export type Say = (text: string, ...values: (string | number)[]) => string;
const english: Say = (text, ...values) => text.replace(/\{(\d)\}/g, (_, number: string) => String(values[Number(number)] ?? ""));

/** What of a server does not fit, in words; empty where all does. */
export function mismatch(version: string | undefined, rpc: unknown, own: string, t: Say = english): string {
  if (version === undefined) return t("the server does not say its version");
  if (!fits(version, own)) return t("server {0}, extension {1}: install the same version of both", version, own);
  if (rpc !== undefined && rpc !== 1) return t("the server speaks revision {0} of the tool methods, the extension 1", String(rpc));
  return "";
}

/** A time as it stands in the status bar: `3.2s`. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)}s`;
}

/** How many tools there are, of the server's status message (`tools: 14, problems with manifests: 2`, `工具：14，清单的问题：2`). */
export function toolsOf(message: string | undefined, t: Say = english): string {
  const found = /^(?:tools: |工具：)(\d+)/.exec(message ?? "");
  return found === null ? "" : ` · ${found[1] === "1" ? t("1 tool") : t("{0} tools", found[1] ?? "")}`;
}

export interface ApprovalOption {
  optionId: string;
  label: string;
  kind: string;
}

export interface ApprovalRequest {
  approvalId: string;
  callId: string;
  tool: string;
  version: string;
  args: Record<string, unknown>;
  argsPreview: string;
  risk: "low" | "medium" | "high";
  permissions: unknown;
  options: ApprovalOption[];
  batch?: { id: string; index: number; count: number };
  /** It is no approval but a question of the tool's MCP server. */
  elicitation?: Elicitation;
}

export interface Elicitation {
  server: string;
  message: string;
  field?: string;
  form?: FormField[];
  url?: { url: string };
}

export type FormValue = string | number | boolean | string[];

export interface FormField {
  name: string;
  title: string;
  type: "string" | "number" | "integer" | "boolean" | "array";
  required: boolean;
  description?: string;
  format?: "email" | "uri" | "date" | "date-time";
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  options?: { value: string; title: string }[];
  minItems?: number;
  maxItems?: number;
  default?: FormValue;
  error?: string;
}

export type ApprovalReply =
  | { outcome: "cancelled" }
  | { outcome: "selected"; optionId: string; editedArgs?: Record<string, unknown>; content?: Record<string, unknown> };

export const CANCELLED: ApprovalReply = { outcome: "cancelled" };

/** The option of a kind, as a reply; cancelled where the question has none. */
export function reply(request: ApprovalRequest, kind: string): ApprovalReply {
  const option = request.options.find((one) => one.kind === kind);
  return option === undefined ? CANCELLED : { outcome: "selected", optionId: option.optionId };
}

/** The beginning of arguments that a toast shows whole. */
export function shortened(text: string, most = 160): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** Somebody else's words, such as a server's, on one line: nothing that nobody sees, no link of the editor (also of a command) and no icon. */
export function words(text: string | undefined, most = 300): string {
  const line = (text ?? "").replace(/[\p{Cc}\p{Cf}\s]+/gu, " ");
  return shortened(line.replace(/[\]$](?=\()/g, "$& "), most);
}

/** The host that a browser goes to; undefined for an address that is not opened. */
export function hostOf(url: string): string | undefined {
  try {
    const { host, username, password } = new URL(url);
    return /^https?:\/\/[!-~]+$/i.test(url) && username + password === "" ? host : undefined;
  } catch {
    return undefined;
  }
}

/** What was typed into a field of a form, as its value; undefined where nothing was, and no number where it is none. */
export function typed(field: FormField, text: string): FormValue | undefined {
  if (field.type === "string") return text || undefined;
  const digits = text.trim();
  return digits === "" ? undefined : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(digits) ? Number(digits) : NaN;
}

const MOST_TYPED = 4000;
const FORMATS = {
  email: /^[^@\s]{1,64}@[^@\s]{1,255}$/,
  uri: /^[a-z][a-z\d+.-]*:(?!\/\/([?#]|$))[^\s?#]\S*$/i,
  date: /^\d{4}-\d\d-\d\d$/,
  "date-time": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$/i,
};

/** What does not fit a field of a form, in the server's words, which looks again; empty where all does. */
export function wrongWith(field: FormField, value: FormValue | undefined, t: Say = english): string {
  if (value === undefined) return field.required ? t("an answer is needed") : "";
  if (typeof value === "number") {
    const { minimum = -Infinity, maximum = Infinity } = field;
    if (Number.isNaN(value)) return t("it is a number");
    if (Math.abs(value) > 2 ** 53) return t("it is a number up to {0}", String(2 ** 53));
    if (field.type === "integer" && value % 1 !== 0) return t("it is a whole number");
    if (value < minimum) return t("it is at least {0}", String(minimum));
    return value > maximum ? t("it is at most {0}", String(maximum)) : "";
  }
  if (Array.isArray(value)) {
    const { minItems = 0, maxItems = Infinity } = field;
    if (value.length < minItems) return t("it has at least {0} choices", minItems);
    return value.length > maxItems ? t("it has at most {0} choices", maxItems) : "";
  }
  if (typeof value === "boolean" || field.options !== undefined) return "";
  const [size, least, most] = [[...value].length, field.minLength ?? 0, Math.min(field.maxLength ?? MOST_TYPED, MOST_TYPED)];
  if (size < least) return t("it has at least {0} characters", least);
  if (size > most) return t("it has at most {0} characters", most);
  const { format } = field;
  if (format === undefined || (FORMATS[format].test(value) && (!format.startsWith("date") || isDay(value)))) return "";
  if (format === "email") return t("it is an email address");
  if (format === "uri") return t("it is an address such as https://example.com/");
  return format === "date" ? t("it is a date such as 2026-07-28") : t("it is a time such as 2026-07-28T09:30:00Z");
}

/** Whether a date, or the one before a time, is in the calendar, and the time in a day. */
function isDay(value: string): boolean {
  const day = value.slice(0, 10);
  const time = Date.parse(day);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day) && !Number.isNaN(Date.parse(value.toUpperCase()));
}

/** Arguments that a person wrote: an object, or what is wrong with the text. */
export function readArguments(text: string, t: Say = english): Record<string, unknown> | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    return t("Arguments are a JSON object, such as {0}", '{"text": "a"}');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Deaths of the server that still count, with one more; and whether it is to be started again. */
export function afterDeath(deaths: readonly number[], now: number, most = 4, within = 180_000): { deaths: number[]; restart: boolean } {
  const counted = [...deaths.filter((time) => now - time < within), now];
  return { deaths: counted, restart: counted.length <= most };
}

const GONE: readonly unknown[] = ["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END"];

/** Whether an error of the connection only says that the server is gone: its end is told by itself, once. */
export function isGone(error: unknown): boolean {
  return typeof error === "object" && error !== null && "code" in error && GONE.includes(error.code);
}

/** What stands before the output of a run, and behind it. */
export function header(what: string, run: string): string {
  return `── ${what} #${run} ──`;
}

/** The number of the run that a call belongs to (`editor-7-1`); the id itself where it is another. */
export function runOf(callId: string): string {
  return /^editor-(\d+)/.exec(callId)?.[1] ?? callId;
}

export interface Told {
  status: string;
  outcome: string;
  results: { toolId: string; permissions?: { denied?: { kind: string; value: string; reason: string }[] } }[];
}

/** What a run was refused, one line each. */
export function denials(run: Told): string[] {
  return run.results.flatMap((result) =>
    (result.permissions?.denied ?? []).map((one) => `${result.toolId}: ${one.kind} ${one.value} (${one.reason})`),
  );
}
