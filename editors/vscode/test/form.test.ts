// The form for arguments, without an editor: fields, arguments, and a page in which nothing of a manifest is more than text.
import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsOf, escaped, fieldsOf, page, without, writable } from "../src/formPage";

const SCHEMA = {
  type: "object",
  properties: {
    note: { type: "string", maxLength: 5000 },
    city: { type: "string", description: "Its name.", examples: ["Oslo"] },
    count: { type: "integer", default: 3 },
    share: { type: ["number", "null"] },
    fast: { type: "boolean" },
    unit: { enum: ["km", 1, null] },
    more: { $ref: "#/$defs/more" },
    key: { type: "string", "x-secret": true },
  },
  required: ["city", "count"],
  $defs: { more: { type: "object" } },
};
const FIELDS = fieldsOf(SCHEMA);
const WORDS = { run: "Run", write: "Write", none: "not given", needed: "needed", untrusted: "Trust" };
const HOSTILE = `"><script>alert(1)</script><img src=x onerror='a'>\`=\${x}`;

test("a schema's parameters are fields of their kind, those that are needed first", () => {
  assert.deepEqual(FIELDS.map(({ name, kind }) => [name, kind]), [
    ["city", "text"], ["count", "number"], ["note", "lines"], ["share", "number"], ["fast", "choice"], ["unit", "choice"], ["more", "json"], ["key", "text"],
  ]);
  assert.deepEqual(FIELDS[5]?.options, ['"km"', "1", "null"]);
  assert.equal(FIELDS[1]?.hint, "3");
});

test("what is written becomes typed arguments, and what is empty is not given", () => {
  const written = { city: "Oslo", count: "2", fast: "true", unit: "null", more: '{"a": [1]}', note: "", share: "" };
  assert.deepEqual(argumentsOf(FIELDS, written), { args: { city: "Oslo", count: 2, fast: true, unit: null, more: { a: [1] } }, wrong: {} });
});

test("what does not fit is said at its field", () => {
  const { wrong } = argumentsOf(FIELDS, { city: "", count: "1.5", share: "x", more: "{" });
  assert.deepEqual(Object.keys(wrong).sort(), ["count", "more", "share"]);
  assert.equal(argumentsOf(FIELDS, { city: "a", count: "" }).wrong["count"], "needed");
});

test("a parameter may have any name", () => {
  const fields = fieldsOf(JSON.parse('{"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "string"}}}'));
  const { args } = argumentsOf(fields, JSON.parse('{"__proto__": "a", "constructor": "b"}'));
  assert.equal(JSON.stringify(args), '{"__proto__":"a","constructor":"b"}');
  assert.equal(Object.getPrototypeOf(args), Object.prototype);
  assert.deepEqual(argumentsOf(fields, {}).args, {});
});

test("schemas of any shape give a form", () => {
  for (const odd of [undefined, null, 1, [], {}, { properties: [] }, { properties: { a: true } }, { properties: { a: { $ref: "#/properties/a" } } }]) {
    assert.ok(Array.isArray(fieldsOf(odd)));
  }
});

test("a secret is a password field, is written by its name and shown nowhere", () => {
  assert.match(page("T", "", FIELDS, "n", WORDS, true), /<input type="password"[^>]*data-name="key"/);
  assert.deepEqual(writable(FIELDS, { city: "a", key: "hunter22" }), { city: "a", key: "{{secret:KEY}}" });
  assert.equal(without('{"key": "hunt\\"er"}', FIELDS, { key: 'hunt"er' }), '{"key": "***"}');
});

test("nothing of a manifest is markup, script or style of the page", () => {
  const fields = fieldsOf({
    properties: { [HOSTILE]: { type: "string", description: HOSTILE, default: HOSTILE, examples: [HOSTILE] }, b: { enum: [HOSTILE] }, c: { "x-secret": true, type: "string", default: HOSTILE } },
    required: [HOSTILE],
  });
  const made = page(HOSTILE, HOSTILE, fields, "abc", WORDS, true);
  assert.equal(made.match(/<script/g)?.length, 1);
  assert.ok(!made.includes("<img"));
  assert.ok(!made.includes("onerror='"));
  assert.equal(escaped("<&>\"'`="), "&#60;&#38;&#62;&#34;&#39;&#96;&#61;");
});

test("the page loads nothing, and only what carries its nonce is run", () => {
  const made = page("T", "", FIELDS, "abc", WORDS, false);
  assert.match(made, /default-src 'none'; style-src 'nonce-abc'; script-src 'nonce-abc'; form-action 'none'; base-uri 'none'/);
  assert.ok(!/\b(?:src|href|action|on\w+)="/.test(made), "no address and no handler");
  assert.ok(!/https?:/.test(made));
  assert.ok(!/ style="/.test(made));
  assert.match(made, /<button data-kind="run" disabled/);
});
