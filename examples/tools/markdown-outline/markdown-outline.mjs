// markdown:outline: the headings, links and open tasks of a Markdown text, with their lines.
// Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.

const MAX_CHARACTERS = 500_000;

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

/** The lines that are Markdown, with code blocks and YAML front matter left out. */
function* proseLines(lines) {
  let fence = null;
  let first = 0;
  if (lines[0] === '---') {
    const end = lines.findIndex((line, index) => index > 0 && /^(?:---|\.\.\.)\s*$/.test(line));
    if (end > 0) first = end + 1;
  }
  for (let index = first; index < lines.length; index += 1) {
    const line = lines[index];
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (fence === null) {
      if (mark !== null && !(mark[1][0] === '`' && mark[2].includes('`'))) fence = mark[1];
      else yield { line, number: index + 1 };
    } else if (mark !== null && mark[1][0] === fence[0] && mark[1].length >= fence.length && mark[2].trim() === '') {
      fence = null;
    }
  }
}

function plain(text) {
  return text
    .replace(/!?\[([^\][]*)\]\([^()]*\)/g, '$1')
    .replace(/[`*]+/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The anchor that GitHub gives to a heading; repeated headings are counted. */
function anchorOf(title, seen) {
  const base = title.toLowerCase().replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, '').replace(/\s/g, '-');
  const count = seen.get(base) ?? 0;
  seen.set(base, count + 1);
  return count === 0 ? base : `${base}-${count}`;
}

function outline(request) {
  const { markdown, max_level: maxLevel = 6, include_links: includeLinks = false } = request;
  if (typeof markdown !== 'string') throw new InputError("'markdown' is required and must be a string");
  if (markdown.length > MAX_CHARACTERS) throw new InputError(`'markdown' is longer than ${MAX_CHARACTERS} characters`);
  if (!Number.isInteger(maxLevel) || maxLevel < 1 || maxLevel > 6) {
    throw new InputError("'max_level' must be a whole number from 1 to 6");
  }
  if (typeof includeLinks !== 'boolean') throw new InputError("'include_links' must be true or false");

  const headings = [];
  const tasks = [];
  const links = [];
  const seen = new Map();
  let previous = null;
  const addHeading = (level, text, line) => {
    const title = plain(text);
    const anchor = anchorOf(title, seen);
    if (level <= maxLevel) headings.push({ level, title, anchor, line });
  };
  for (const { line, number } of proseLines(markdown.split(/\r?\n/))) {
    const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/.exec(line);
    const underline = /^ {0,3}(=+|-+)\s*$/.exec(line);
    if (heading !== null) {
      addHeading(heading[1].length, (heading[2] ?? '').trim().replace(/(?:^|[ \t])#+$/, ''), number);
      previous = null;
    } else if (underline !== null && previous !== null && previous.number === number - 1) {
      addHeading(underline[1][0] === '=' ? 1 : 2, previous.line, previous.number);
      previous = null;
    } else {
      // Only a paragraph line can be underlined: not a list item, a quotation, a table row or indented code.
      previous = /^ {0,3}(?![-*+>|]|\d+[.)])\S/.test(line) ? { line, number } : null;
    }
    const task = /^\s*[-*+] \[([ xX])\] (.+)$/.exec(line);
    if (task !== null) tasks.push({ text: plain(task[2]), done: task[1] !== ' ', line: number });
    if (includeLinks) {
      for (const link of line.replace(/`[^`]*`/g, '').matchAll(/(?<!!)\[([^\][]{1,300})\]\(([^()\s]{1,2000})[^()]{0,300}\)/g)) {
        links.push({ text: plain(link[1]), target: link[2], line: number });
      }
    }
  }
  const open = tasks.filter((task) => !task.done).length;
  const result = { headings, tasks, open_tasks: open };
  return includeLinks ? { ...result, links } : result;
}

try {
  const result = outline(await readRequest());
  process.stdout.write(`${JSON.stringify(result)}\n`);
} catch (error) {
  process.stderr.write(`${error.message.replace(/\s+/g, ' ')}\n`);
  process.exitCode = 1;
}
