// yaml:convert: YAML to JSON and back, by the package `yaml`, which package-lock.json pins.
// Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.

import { LineCounter, parseAllDocuments, stringify } from 'yaml';

const MAX_CHARACTERS = 500_000;
const MAX_ALIASES = 100;

class InputError extends Error {}

async function readRequest() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  let request;
  try {
    request = JSON.parse(Buffer.concat(chunks).toString('utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    throw new InputError(`standard input is not JSON: ${error.message}`);
  }
  if (request === null || typeof request !== 'object' || Array.isArray(request)) {
    throw new InputError('the input must be one JSON object');
  }
  return request;
}

/** What JSON cannot say is refused by name instead of being changed silently. */
function requireJson(value, place) {
  if (typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value))) {
    throw new InputError(`${place} is ${value}, which JSON cannot say`);
  }
  if (value !== null && typeof value === 'object') {
    for (const [key, item] of Object.entries(value)) requireJson(item, `${place}/${key}`);
  }
}

function toJson(text) {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const values = [];
  for (const document of documents) {
    const [fault] = document.errors;
    if (fault !== undefined) {
      const { line, col } = lines.linePos(fault.pos[0]);
      throw new InputError(`the YAML is wrong at line ${line}, column ${col}: ${fault.message.split('\n')[0]}`);
    }
    let value;
    try {
      value = document.toJS({ maxAliasCount: MAX_ALIASES });
    } catch (error) {
      throw new InputError(`the YAML cannot be read: ${error.message}`);
    }
    requireJson(value, '');
    values.push(value);
  }
  return { documents: values };
}

function convert(request) {
  const { operation, text, value, indent = 2 } = request;
  if (operation !== 'read' && operation !== 'write') throw new InputError("'operation' must be 'read' or 'write'");
  if (operation === 'write') {
    if (value === null || typeof value !== 'object') throw new InputError("'value' must be an object or a list");
    if (!Number.isInteger(indent) || indent < 1 || indent > 8) throw new InputError("'indent' must be a whole number from 1 to 8");
    return { text: stringify(value, { indent, lineWidth: 0 }) };
  }
  if (typeof text !== 'string') throw new InputError("'text' must be a text");
  if (text.length > MAX_CHARACTERS) throw new InputError(`'text' has ${text.length} characters; the most is ${MAX_CHARACTERS}`);
  return toJson(text);
}

try {
  console.log(JSON.stringify(convert(await readRequest())));
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
