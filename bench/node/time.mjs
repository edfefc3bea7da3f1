// Times fast-xml-parser on texts that the bench names, as agents use it: a regular expression finds blocks, the parser reads each.
// One JSON line in: {"file": …, "times": n}; one line out: processor seconds for n readings of that file's text.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { XMLParser } from "fast-xml-parser";

const parser = new XMLParser();
const texts = new Map();

function read(text) {
  const calls = [];
  for (const block of text.matchAll(/<ACTION>[\s\S]*?<\/ACTION>/g)) calls.push(parser.parse(block[0]).ACTION);
  return calls;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { file, times } = JSON.parse(line);
  if (!texts.has(file)) {
    texts.set(file, readFileSync(file, "utf8"));
    // The compiler of the engine has had its say before anything is measured.
    for (const until = Date.now() + 300; Date.now() < until; ) read(texts.get(file));
  }
  const text = texts.get(file);
  let found = 0;
  const started = process.cpuUsage();
  for (let i = 0; i < times; i++) found += read(text).length;
  const { user, system } = process.cpuUsage(started);
  const seconds = (user + system) / 1e6;
  if (found === 0) throw new Error(`no block in ${file}`);
  console.log(seconds);
}
