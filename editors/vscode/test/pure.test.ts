// Pure parts of the client, without an editor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expand } from "../src/braces.cjs";
import { afterDeath, denials, fits, header, hostOf, isGone, isOurs, mismatch, readArguments, reply, runOf, seconds, shortened, toolsOf, typed, virtualScheme, words, wrongWith, type FormField, type FormValue } from "../src/pure";
import answers from "./answers.json";

const REQUEST = {
  approvalId: "a", callId: "editor-7-1", tool: "t:ask", version: "1.0.0", args: {}, argsPreview: "{}", risk: "low" as const, permissions: {},
  options: [{ optionId: "allow", label: "Allow once", kind: "allow_once" }, { optionId: "reject", label: "Deny", kind: "reject_once" }],
};

test("only manifests, profiles, settings and files of one protocol start the server", () => {
  for (const path of ["/w/a.tool.json", "/w/a.tool.jsonc", "/w/agent_profile.json", "/w/x.agent_profile.json", "/w/plugin-manifest.json", "/w/tamis.toml"]) {
    assert.equal(isOurs(path, "json"), true, path);
  }
  for (const path of ["/w/package.json", "/w/my-tool.json", "/w/tool.json", "/w/tamis.toml.bak"]) assert.equal(isOurs(path, "json"), false, path);
  assert.equal(isOurs("/w/anything", "tam"), true);
});

test("a workspace is virtual where none of its folders is on a disk", () => {
  assert.equal(virtualScheme(["vscode-vfs", "memfs"]), "vscode-vfs");
  assert.equal(virtualScheme(["vscode-vfs", "file"]), undefined);
  assert.equal(virtualScheme([]), undefined);
});

test("a server of another minor version below 1, or of another major version, does not fit", () => {
  assert.equal(fits("0.1.7", "0.1.0"), true);
  assert.equal(fits("0.2.0", "0.1.0"), false);
  assert.equal(fits("1.9.0", "1.2.0"), true);
  assert.equal(fits("2.0.0", "1.2.0"), false);
});

test("the handshake says what does not fit, and nothing else", () => {
  assert.equal(mismatch("0.1.0", undefined, "0.1.0"), "");
  assert.equal(mismatch("0.1.0", 1, "0.1.0"), "");
  assert.match(mismatch("0.1.0", 2, "0.1.0"), /revision 2/);
  assert.match(mismatch("0.3.0", 1, "0.1.0"), /server 0.3.0, extension 0.1.0/);
  assert.match(mismatch(undefined, 1, "0.1.0"), /does not say/);
});

test("a server that dies is started four times in three minutes", () => {
  let deaths: number[] = [];
  const restarts = [0, 1, 2, 3, 4].map((second) => {
    const next = afterDeath(deaths, second * 1000);
    deaths = next.deaths;
    return next.restart;
  });
  assert.deepEqual(restarts, [true, true, true, true, false]);
  assert.equal(afterDeath(deaths, 10 * 60 * 1000).restart, true);
});

test("only what says that the server is gone is left to its end", () => {
  for (const code of ["EPIPE", "ERR_STREAM_DESTROYED"]) assert.equal(isGone(Object.assign(new Error("write"), { code })), true, code);
  for (const other of [new Error("bad header"), Object.assign(new Error("x"), { code: "EACCES" }), undefined, null, "EPIPE"]) assert.equal(isGone(other), false);
});

test("an answer that a question does not have is no answer", () => {
  assert.deepEqual(reply(REQUEST, "allow_once"), { outcome: "selected", optionId: "allow" });
  assert.deepEqual(reply(REQUEST, "allow_always"), { outcome: "cancelled" });
});

test("edited arguments are an object, or what is wrong with the text", () => {
  assert.deepEqual(readArguments('{"a": 1}'), { a: 1 });
  for (const wrong of ["[1]", "1", "null", "{", ""]) assert.equal(typeof readArguments(wrong), "string", wrong);
});

test("words of the status bar and of the output", () => {
  assert.equal(seconds(3249), "3.2s");
  assert.equal(toolsOf("tools: 14, problems with manifests: 2"), " · 14 tools");
  assert.equal(toolsOf("tools: 1"), " · 1 tool");
  assert.equal(toolsOf("工具：14，清单的问题：2"), " · 14 tools");
  assert.equal(toolsOf(undefined), "");
  assert.equal(header("core:echo", runOf("editor-7-1")), "── core:echo #7 ──");
  assert.equal(runOf("x"), "x");
  assert.equal(shortened("a".repeat(200)).length, 160);
});

test("what a run was refused, a line each", () => {
  const told = { status: "error", outcome: "", results: [{ toolId: "t:a", permissions: { denied: [{ kind: "host", value: "a.test", reason: "not allowed" }] } }, { toolId: "t:b" }] };
  assert.deepEqual(denials(told), ["t:a: host a.test (not allowed)"]);
});

test("what is typed into a form fits or is told as the server tells it", () => {
  for (const { field, typed: text, value, wrong } of answers as unknown as { field: FormField; typed: string | null; value: FormValue | null; wrong: string }[]) {
    const found = text === null ? (value ?? undefined) : typed(field, text);
    assert.equal(wrongWith(field, found), wrong, JSON.stringify([field, text, value]));
    if (wrong === "") assert.deepEqual(found, value ?? undefined);
  }
});

test("a server's words are one line without direction, links of the editor or icons", () => {
  assert.equal(words("a\nb\u202ec\u200bd\te"), "a b c d e");
  assert.equal(words("[run](command:x) $(check) [a](https://b)"), "[run] (command:x) $ (check) [a] (https://b)");
  assert.equal(words("x".repeat(10_000), 80).length, 80);
  assert.equal(words(undefined), "");
});

test("only http and https are opened, and the host is the browser's", () => {
  assert.equal(hostOf("https://Example.com:8443/a?b#c"), "example.com:8443");
  assert.equal(hostOf("https://good.example\\@evil.example/"), "good.example");
  for (const url of ["javascript:alert(1)", "file:///etc/passwd", "https://good.example@evil.example/", "https://a:b@evil.example/", "data:text/html,x", "command:x", "vscode://a/b", "https://g\u043eod.example/", "https://a b/", "https://", "x", " https://a.example/", "https://a.example/\n"]) {
    assert.equal(hostOf(url), undefined, url);
  }
});

test("lists in braces are patterns of their own, and never too many", () => {
  assert.deepEqual(expand("**/*.{json,jsonc}"), ["**/*.json", "**/*.jsonc"]);
  assert.deepEqual(expand("{a,b{c,d}}$&.{x}"), ["a$&.{x}", "bc$&.{x}", "bd$&.{x}"]);
  assert.ok(expand("{a,b}".repeat(500)).length <= 1000);
});
