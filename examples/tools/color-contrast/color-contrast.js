'use strict';
// color:contrast: the WCAG 2 contrast of two colours, and the nearest text colour that passes.
// Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.

const { names } = require('./color-names.json');

const NEEDED = { 'AA': { normal: 4.5, large: 3 }, 'AAA': { normal: 7, large: 4.5 } };

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

/** `#rgb`, `#rrggbb`, `rgb(1, 2, 3)` or a CSS name, as three numbers from 0 to 255. */
function toRgb(value, parameter) {
  if (typeof value !== 'string') throw new InputError(`'${parameter}' is required and must be a colour`);
  const text = value.trim().toLowerCase();
  const code = Object.hasOwn(names, text) ? names[text] : text;
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/.exec(code);
  if (short !== null) return short.slice(1).map((digit) => parseInt(digit + digit, 16));
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(code);
  if (long !== null) return long.slice(1).map((digits) => parseInt(digits, 16));
  const call = /^rgb\(\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*[, ]\s*(\d{1,3})\s*\)$/.exec(code);
  if (call !== null && call.slice(1).every((part) => Number(part) <= 255)) return call.slice(1).map(Number);
  throw new InputError(
    `'${parameter}' is ${JSON.stringify(value.slice(0, 40))}; write #rrggbb, #rgb, rgb(r, g, b) or a CSS colour name`,
  );
}

function toHex(rgb) {
  return `#${rgb.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}

function luminance(rgb) {
  const [red, green, blue] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** Rounded down: 4.499 must not be shown as the 4.5 that would pass. */
function shown(ratio) {
  return Math.floor(ratio * 100 + 1e-9) / 100;
}

/** The text colour, moved towards black or white in 1 % steps until it passes; null when neither end does. */
function suggestion(text, background, needed) {
  for (let step = 1; step <= 100; step += 1) {
    const passing = [0, 255]
      .map((end) => text.map((part) => Math.round(part + ((end - part) * step) / 100)))
      .filter((candidate) => contrast(candidate, background) >= needed)
      .sort((a, b) => contrast(b, background) - contrast(a, background));
    if (passing.length > 0) return toHex(passing[0]);
  }
  return null;
}

function check(request) {
  const { level = 'AA', large_text: largeText = false } = request;
  if (!Object.hasOwn(NEEDED, level)) throw new InputError("'level' must be AA or AAA");
  if (typeof largeText !== 'boolean') throw new InputError("'large_text' must be true or false");
  const text = toRgb(request.text_color, 'text_color');
  const background = toRgb(request.background_color, 'background_color');
  const needed = NEEDED[level][largeText ? 'large' : 'normal'];
  const ratio = contrast(text, background);
  const passes = ratio >= needed;
  return {
    text_color: toHex(text),
    background_color: toHex(background),
    ratio: shown(ratio),
    needed,
    passes,
    suggestion: passes ? null : suggestion(text, background, needed),
  };
}

async function main() {
  try {
    process.stdout.write(`${JSON.stringify(check(await readRequest()))}\n`);
  } catch (error) {
    process.stderr.write(`${error.message.replace(/\s+/g, ' ')}\n`);
    process.exitCode = 1;
  }
}

main();
