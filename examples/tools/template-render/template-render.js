'use strict';
// template:render: fills a Mustache-like template. There is no code in templates, so a model may write them.
// Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.

const MAX_TEMPLATE = 200_000;
const MAX_RESULT = 800_000;
const MAX_DEPTH = 20;

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

/** Cuts a template into a tree: text, {kind: 'value'} and {kind: 'section', children}. */
function parse(template) {
  const root = { children: [] };
  const open = [root];
  const tag = /\{\{([^{}]*)\}\}/g;
  let at = 0;
  let line = 1;
  let lineStart = 0;
  let counted = 0;
  for (let match = tag.exec(template); match !== null; match = tag.exec(template)) {
    const whole = match[0];
    const inner = match[1].trim();
    const sigil = '#^/!'.includes(inner[0] ?? ' ') ? inner[0] : '';
    const name = inner.slice(sigil.length).trim();
    for (; counted < match.index; counted += 1) {
      if (template[counted] === '\n') {
        line += 1;
        lineStart = counted + 1;
      }
    }
    const here = open[open.length - 1];
    let start = match.index;
    let end = start + whole.length;
    if (sigil !== '') {
      // A section tag alone on its line takes the line with it, so that lists get no blank lines.
      const after = /^[ \t]*(?:\r?\n|$)/.exec(template.slice(end, end + 200));
      if (after !== null && lineStart >= at && /^[ \t]*$/.test(template.slice(lineStart, start))) {
        start = lineStart;
        end += after[0].length;
      }
    }
    here.children.push(template.slice(at, start));
    at = end;
    tag.lastIndex = end;
    if (sigil === '!') continue;
    if (!/^(?:\.|[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*)$/u.test(name)) {
      throw new InputError(`line ${line}: ${JSON.stringify(whole.slice(0, 60))} does not name a value`);
    }
    if (sigil === '/') {
      if (open.length === 1 || here.name !== name) {
        throw new InputError(`line ${line}: {{/${name}}} closes no open section`);
      }
      open.pop();
    } else if (sigil === '') {
      here.children.push({ kind: 'value', name, line });
    } else {
      if (open.length > MAX_DEPTH) throw new InputError(`sections are nested deeper than ${MAX_DEPTH}`);
      const section = { kind: 'section', name, inverted: sigil === '^', children: [] };
      here.children.push(section);
      open.push(section);
    }
  }
  if (open.length > 1) throw new InputError(`{{#${open[open.length - 1].name}}} is never closed`);
  root.children.push(template.slice(at));
  return root;
}

/** The value of a dotted name: the innermost context that has the first part decides. */
function lookUp(contexts, name) {
  if (name === '.') return contexts[contexts.length - 1];
  const [first, ...rest] = name.split('.');
  for (let index = contexts.length - 1; index >= 0; index -= 1) {
    const context = contexts[index];
    if (context !== null && typeof context === 'object' && Object.hasOwn(context, first)) {
      return rest.reduce(
        (value, key) =>
          value !== null && typeof value === 'object' && Object.hasOwn(value, key) ? value[key] : undefined,
        context[first],
      );
    }
  }
  return undefined;
}

const HTML = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function render(request) {
  const { template, values = {}, escape = 'none', missing = 'error' } = request;
  if (typeof template !== 'string') throw new InputError("'template' is required and must be a string");
  if (template.length > MAX_TEMPLATE) throw new InputError(`'template' is longer than ${MAX_TEMPLATE} characters`);
  if (values === null || typeof values !== 'object' || Array.isArray(values)) {
    throw new InputError("'values' must be an object");
  }
  if (!['none', 'html'].includes(escape)) throw new InputError("'escape' must be none or html");
  if (!['error', 'empty', 'keep'].includes(missing)) throw new InputError("'missing' must be error, empty or keep");

  const absent = new Set();
  const pieces = [];
  let size = 0;
  const write = (text) => {
    size += text.length;
    if (size > MAX_RESULT) throw new InputError(`the result is longer than ${MAX_RESULT} characters`);
    pieces.push(text);
  };
  const writeValue = (node, contexts) => {
    const value = lookUp(contexts, node.name);
    if (value === undefined) {
      if (missing === 'error') throw new InputError(`line ${node.line}: there is no value for ${node.name}`);
      absent.add(node.name);
      write(missing === 'keep' ? `{{${node.name}}}` : '');
      return;
    }
    const text = value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
    write(escape === 'html' ? text.replace(/[&<>"']/g, (character) => HTML[character]) : text);
  };
  let steps = 0;
  const walk = (children, contexts) => {
    for (const node of children) {
      // Nested sections over lists multiply; a template of a few lines could otherwise run for hours.
      steps += 1;
      if (steps > 2_000_000) throw new InputError('the template repeats too often');
      if (typeof node === 'string') write(node);
      else if (node.kind === 'value') writeValue(node, contexts);
      else {
        const value = lookUp(contexts, node.name);
        const empty =
          value === undefined || value === null || value === false || value === '' || value === 0 ||
          (Array.isArray(value) && value.length === 0);
        if (node.inverted) {
          if (empty) walk(node.children, contexts);
        } else if (Array.isArray(value)) {
          for (const entry of value) walk(node.children, [...contexts, entry]);
        } else if (!empty) {
          walk(node.children, typeof value === 'object' ? [...contexts, value] : contexts);
        }
      }
    }
  };
  walk(parse(template).children, [values]);
  return { text: pieces.join(''), missing: [...absent].sort() };
}

async function main() {
  try {
    process.stdout.write(`${JSON.stringify(render(await readRequest()))}\n`);
  } catch (error) {
    process.stderr.write(`${error.message.replace(/\s+/g, ' ')}\n`);
    process.exitCode = 1;
  }
}

main();
