// A form for the arguments of a tool, from its schema: which fields, how what is written in them becomes arguments, and the page. Decided without
// an editor. Everything that a manifest says is text here: it is escaped, and the page may load nothing and run nothing but its own script.

export type Schema = Record<string, unknown>;

export interface Field {
  name: string;
  kind: "text" | "lines" | "number" | "choice" | "json";
  whole: boolean;
  required: boolean;
  secret: boolean;
  description: string;
  /** What stands in an empty field. */
  hint: string;
  /** JSON texts to choose from. */
  options: string[];
  examples: string[];
}

const MAX_FIELDS = 200;

function object(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A schema behind a `$ref` into its own document. */
function resolved(schema: unknown, root: Schema): Schema {
  let found = object(schema);
  for (let steps = 0; steps < 8 && typeof found["$ref"] === "string" && found["$ref"].startsWith("#/"); steps += 1) {
    let here: unknown = root;
    for (const part of found["$ref"].slice(2).split("/")) here = object(here)[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    found = { ...object(here), ...Object.fromEntries(Object.entries(found).filter(([key]) => key !== "$ref")) };
  }
  return found;
}

function typeOf(schema: Schema): string {
  const types = Array.isArray(schema["type"]) ? schema["type"].filter((one) => one !== "null") : [schema["type"]];
  return types.length === 1 && typeof types[0] === "string" ? types[0] : "";
}

function kindOf(schema: Schema, options: string[]): Field["kind"] {
  const type = typeOf(schema);
  if (options.length > 0 || type === "boolean") return "choice";
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return Number(schema["maxLength"] ?? 0) > 200 ? "lines" : "text";
  return "json";
}

/** The fields of a tool's parameters, those that it needs first. */
export function fieldsOf(parameters: unknown): Field[] {
  const root = object(parameters);
  const required = new Set(list(root["required"]));
  const fields = Object.entries(object(root["properties"])).map(([name, declared]): Field => {
    const schema = resolved(declared, root);
    const fixed = "const" in schema ? [schema["const"]] : list(schema["enum"]);
    const options = fixed.map((value) => JSON.stringify(value) ?? "null");
    const kind = kindOf(schema, options);
    const spoken = (value: unknown): string => (kind === "text" || kind === "lines" ? String(value) : (JSON.stringify(value) ?? ""));
    return {
      name,
      kind,
      whole: typeOf(schema) === "integer",
      required: required.has(name),
      secret: schema["x-secret"] === true,
      description: typeof schema["description"] === "string" ? schema["description"] : "",
      hint: schema["default"] === undefined ? "" : spoken(schema["default"]),
      options: kind === "choice" && options.length === 0 ? ["true", "false"] : options,
      examples: list(schema["examples"]).map(spoken).slice(0, 20),
    };
  });
  return [...fields.filter((one) => one.required), ...fields.filter((one) => !one.required)].slice(0, MAX_FIELDS);
}

/** What was written, as arguments; and what is wrong with it, by field. An empty field that is not needed is not given. */
export function argumentsOf(fields: readonly Field[], written: Record<string, unknown>): { args: Record<string, unknown>; wrong: Record<string, string> } {
  const args: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  const put = (name: string, value: unknown): void => {
    Object.defineProperty(args, name, { value, enumerable: true, configurable: true, writable: true });
  };
  for (const field of fields) {
    const text = String(Object.hasOwn(written, field.name) ? (written[field.name] ?? "") : "");
    if (text === "" && (!field.required || field.kind !== "text")) {
      if (field.required && field.kind !== "lines") wrong[field.name] = "needed";
      else if (field.required) put(field.name, "");
      continue;
    }
    if (field.kind === "text" || field.kind === "lines") {
      put(field.name, text);
    } else if (field.kind === "number") {
      const value = Number(text);
      if (text.trim() === "" || !Number.isFinite(value) || (field.whole && !Number.isInteger(value))) wrong[field.name] = field.whole ? "whole" : "number";
      else put(field.name, value);
    } else {
      try {
        put(field.name, JSON.parse(text));
      } catch (error) {
        wrong[field.name] = error instanceof Error ? error.message : String(error);
      }
    }
  }
  return { args, wrong };
}

/** Arguments as they are written into a file: a secret by its name, never by its value. */
export function writable(fields: readonly Field[], args: Record<string, unknown>): Record<string, unknown> {
  const secret = new Set(fields.filter((one) => one.secret).map((one) => one.name));
  const name = (of: string): string => of.replaceAll(/\W/g, "_").toUpperCase();
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, secret.has(key) ? `{{secret:${name(key)}}}` : value]));
}

/** A text without the secrets that were written into the form. */
export function without(text: string, fields: readonly Field[], args: Record<string, unknown>): string {
  let shown = text;
  for (const field of fields) {
    const value = args[field.name];
    if (!field.secret || value === undefined) continue;
    const spoken = typeof value === "string" ? value : JSON.stringify(value);
    for (const one of [spoken, JSON.stringify(spoken).slice(1, -1)]) if (one.length >= 4) shown = shown.replaceAll(one, "***");
  }
  return shown;
}

export function escaped(text: string): string {
  return text.replace(/[&<>"'`=]/g, (char) => `&#${char.charCodeAt(0)};`);
}

export interface Words {
  run: string;
  write: string;
  none: string;
  needed: string;
  untrusted: string;
}

function control(field: Field, number: number, words: Words): string {
  const name = `id="f${number}" data-name="${escaped(field.name)}"${field.required ? " required" : ""} placeholder="${escaped(field.hint)}"`;
  if (field.kind === "choice") {
    const options = field.options.map((one) => `<option value="${escaped(one)}">${escaped(one)}</option>`).join("");
    return `<select ${name}><option value="">${escaped(field.hint || words.none)}</option>${options}</select>`;
  }
  if (field.secret) return `<input type="password" autocomplete="off" ${name}>`;
  if (field.kind === "json" || field.kind === "lines") return `<textarea rows="3" spellcheck="false" ${name}></textarea>`;
  const offered = field.examples.length === 0 ? "" : `<datalist id="d${number}">${field.examples.map((one) => `<option value="${escaped(one)}">`).join("")}</datalist>`;
  const type = field.kind === "number" ? `type="number" step="${field.whole ? "1" : "any"}"` : 'type="text"';
  return `<input ${type} ${offered === "" ? "" : `list="d${number}"`} ${name}>${offered}`;
}

const STYLE = `body{padding:0 16px;max-width:720px}label{display:block;margin-top:12px;font-weight:600}small{display:block;opacity:.8;white-space:pre-wrap}
input,select,textarea{box-sizing:border-box;width:100%;margin-top:4px;padding:4px;color:var(--vscode-input-foreground);background:var(--vscode-input-background);border:1px solid var(--vscode-input-border,transparent);font-family:inherit}
textarea{font-family:var(--vscode-editor-font-family)}button{margin:16px 8px 0 0;padding:6px 14px;border:0;color:var(--vscode-button-foreground);background:var(--vscode-button-background);cursor:pointer}
button.second{color:var(--vscode-button-secondaryForeground);background:var(--vscode-button-secondaryBackground)}.wrong{color:var(--vscode-errorForeground);font-weight:400}
pre{white-space:pre-wrap;word-break:break-word;padding:8px;background:var(--vscode-textCodeBlock-background)}pre:empty{display:none}`;

const SCRIPT = `const vscode=acquireVsCodeApi(),fields=[...document.querySelectorAll("[data-name]")],out=document.getElementById("out"),buttons=[...document.querySelectorAll("button")];
const send=(kind)=>vscode.postMessage({kind,written:Object.fromEntries(fields.map((one)=>[one.dataset.name,one.value]))});
for(const button of buttons)button.addEventListener("click",()=>send(button.dataset.kind));
for(const one of fields)one.addEventListener("input",()=>{document.getElementById("w"+one.id).textContent=""});
window.addEventListener("message",({data})=>{
for(const one of fields){const place=document.getElementById("w"+one.id);place.textContent=Object.hasOwn(data.wrong??{},one.dataset.name)?data.wrong[one.dataset.name]:""}
if(data.text!==undefined)out.textContent=data.text;for(const one of buttons)one.disabled=data.busy===true||(one.dataset.kind==="run"&&document.body.dataset.run==="no")});
fields[0]?.focus();`;

/** The page; `nonce` is new each time, and the only thing that may be styled or run is what carries it. */
export function page(title: string, description: string, fields: readonly Field[], nonce: string, words: Words, runs: boolean): string {
  const rows = fields.map((field, number) => {
    const need = field.required ? ` <small>${escaped(words.needed)}</small>` : "";
    return `<label for="f${number}">${escaped(field.name)} <span class="wrong" id="wf${number}"></span></label>${need}<small>${escaped(field.description)}</small>${control(field, number, words)}`;
  });
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; form-action 'none'; base-uri 'none'`;
  return `<!DOCTYPE html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><style nonce="${nonce}">${STYLE}</style></head>
<body data-run="${runs ? "yes" : "no"}"><h2>${escaped(title)}</h2><small>${escaped(description)}</small>${rows.join("\n")}
<div><button data-kind="run"${runs ? "" : ` disabled title="${escaped(words.untrusted)}"`}>${escaped(words.run)}</button><button class="second" data-kind="write">${escaped(words.write)}</button></div><pre id="out"></pre>
<script nonce="${nonce}">${SCRIPT}</script></body></html>`;
}
