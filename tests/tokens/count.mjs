// Counts tokens: a JSON list of texts on standard input, a list of [o200k_base, cl100k_base] on standard output.
import { readFileSync } from 'node:fs';
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';

// What looks like a special token is text here: it comes from a document.
const asText = { disallowedSpecial: new Set() };
const texts = JSON.parse(readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map((text) => [o200k(text, asText), cl100k(text, asText)])));
