// table:format: turns rows into an aligned Markdown table, a CSV or a TSV text.
// It runs on bun because `Bun.stringWidth` knows that 汉字 take two columns each and that an accent takes none.
// Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.

type Cell = string | number | boolean | null;
type Align = "left" | "right" | "center";

const MAX_ROWS = 5000;
const MAX_COLUMNS = 50;
const FORMATS = ["markdown", "csv", "tsv"] as const;

class InputError extends Error {}

async function readRequest(): Promise<Record<string, unknown>> {
  let request: unknown;
  try {
    request = JSON.parse((await Bun.stdin.text()).replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new InputError(`standard input is not JSON: ${(error as Error).message}`);
  }
  if (!isRecord(request)) throw new InputError("the input must be one JSON object");
  return request;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function isCell(value: unknown): value is Cell {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function readRows(value: unknown): Record<string, Cell>[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_ROWS) {
    throw new InputError(`'rows' is required and must be a list of 1 to ${MAX_ROWS} objects`);
  }
  return value.map((row, index) => {
    if (!isRecord(row)) throw new InputError(`'rows': row ${index + 1} is not an object`);
    for (const [name, cell] of Object.entries(row)) {
      if (!isCell(cell)) throw new InputError(`'rows': row ${index + 1}, ${name} is no text, number, true/false or null`);
    }
    return row as Record<string, Cell>;
  });
}

function readColumns(value: unknown, rows: Record<string, Cell>[]): string[] {
  const found = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  if (value === undefined) {
    if (found.length === 0) throw new InputError("'rows' hold no values");
    if (found.length > MAX_COLUMNS) throw new InputError(`the rows have ${found.length} columns; the limit is ${MAX_COLUMNS}`);
    return found;
  }
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_COLUMNS) {
    throw new InputError(`'columns' must be a list of 1 to ${MAX_COLUMNS} names`);
  }
  for (const name of value) {
    if (typeof name !== "string" || !found.includes(name)) {
      throw new InputError(`there is no column ${JSON.stringify(name)}; the columns are ${found.slice(0, MAX_COLUMNS).join(", ")}`);
    }
  }
  return value as string[];
}

function markdownCell(cell: Cell): string {
  return cell === null ? "" : String(cell).replace(/\|/g, "\\|").replace(/\s*\r?\n\s*/g, "<br>");
}

function pad(text: string, width: number, align: Align): string {
  const missing = width - Bun.stringWidth(text);
  const left = align === "right" ? missing : align === "center" ? Math.floor(missing / 2) : 0;
  return " ".repeat(left) + text + " ".repeat(missing - left);
}

function markdown(columns: string[], body: Cell[][]): string {
  const header = columns.map(markdownCell);
  const lines = body.map((row) => row.map(markdownCell));
  const aligns = columns.map((_, index): Align => {
    const cells = body.map((row) => row[index]).filter((cell) => cell !== null);
    return cells.length > 0 && cells.every((cell) => typeof cell === "number") ? "right" : "left";
  });
  const widths = header.map((name, index) =>
    lines.reduce((most, line) => Math.max(most, Bun.stringWidth(line[index] ?? "")), Math.max(3, Bun.stringWidth(name))),
  );
  const drawn = (cells: string[]) =>
    `| ${cells.map((cell, index) => pad(cell, widths[index] ?? 3, aligns[index] ?? "left")).join(" | ")} |`;
  const rule = widths.map((width, index) => (aligns[index] === "right" ? `${"-".repeat(width - 1)}:` : "-".repeat(width)));
  return [drawn(header), `| ${rule.join(" | ")} |`, ...lines.map(drawn)].join("\n");
}

function separated(columns: string[], body: Cell[][], separator: string): string {
  const quoted = (cell: Cell) => {
    const text = cell === null ? "" : String(cell);
    return text.includes(separator) || /["\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [columns, ...body].map((row) => row.map(quoted).join(separator)).join("\n");
}

/** Numbers by size, anything else as text; empty cells come last in either direction. */
function compare(a: Cell, b: Cell, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order =
    typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : Number(String(a) > String(b));
  return descending ? -order : order;
}

function format(request: Record<string, unknown>): Record<string, unknown> {
  const rows = readRows(request.rows);
  const columns = readColumns(request.columns, rows);
  const form = FORMATS.find((name) => name === (request.format ?? "markdown"));
  if (form === undefined) throw new InputError(`'format' must be one of ${FORMATS.join(", ")}`);
  const { sort_by: sortBy, descending = false } = request;
  if (typeof descending !== "boolean") throw new InputError("'descending' must be true or false");
  if (sortBy !== undefined) {
    if (typeof sortBy !== "string" || !rows.some((row) => Object.hasOwn(row, sortBy))) {
      throw new InputError("'sort_by' must be the name of a column");
    }
    rows.sort((a, b) => compare(a[sortBy] ?? null, b[sortBy] ?? null, descending));
  }
  const body = rows.map((row) => columns.map((name) => row[name] ?? null));
  const text = form === "markdown" ? markdown(columns, body) : separated(columns, body, form === "csv" ? "," : "\t");
  return { text, rows: rows.length, columns };
}

try {
  const result = format(await readRequest());
  process.stdout.write(`${JSON.stringify(result)}\n`);
} catch (error) {
  process.stderr.write(`${(error as Error).message.replace(/\s+/g, " ")}\n`);
  process.exitCode = 1;
}
