// Pure parts of the client, without an editor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterDeath, denials, fits, header, isOurs, mismatch, readArguments, reply, runOf, seconds, shortened, toolsOf } from "../src/pure";

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
  assert.equal(toolsOf(undefined), "");
  assert.equal(header("core:echo", runOf("editor-7-1")), "── core:echo #7 ──");
  assert.equal(runOf("x"), "x");
  assert.equal(shortened("a".repeat(200)).length, 160);
});

test("what a run was refused, a line each", () => {
  const told = { status: "error", outcome: "", results: [{ toolId: "t:a", permissions: { denied: [{ kind: "host", value: "a.test", reason: "not allowed" }] } }, { toolId: "t:b" }] };
  assert.deepEqual(denials(told), ["t:a: host a.test (not allowed)"]);
});
