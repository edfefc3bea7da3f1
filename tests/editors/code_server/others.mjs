// The steps that have a window of their own, beside the steps of the first window.
import { readFileSync, writeFileSync } from "node:fs";
import { logged, servers } from "./processes.mjs";

/** The first folder in a second window, which goes on with what the first window need not do. */
export async function secondWindow(newWindow, config) {
  const { page, step, leave, run, open, ask, visit, file, texts, lens, press, bring, picks, pick, hidePanel, problemsWith, allProblems, trust, tidy, picture } = await newWindow();

  await step("twoWindows", async () => {
    const serving = () => servers(config, config.folder).length;
    const before = serving();
    await visit("folder", config.folder, "calls.md");
    await trust();
    await file("calls.md").dblclick();
    await lens("▶ Run").waitFor();
    const found = { before, both: serving() };
    await press("▶ Run", page.locator(".tab", { hasText: "✓" }));
    return found;
  });

  await step("exported", async () => {
    await tidy();
    await open("calls.md");
    await run("Tamis: Export");
    await pick("anthropic");
    await page.locator(".view-lines", { hasText: "input_schema" }).first().waitFor();
    return (await texts(".view-lines")).join("\n");
  });

  await step("failedInScript", async () => {
    await tidy();
    await open("fails.vcp");
    await press("▶ Run", page.locator(".tab", { hasText: "demo:fails · ✗" }));
    const rows = await problemsWith("out of luck", 2);
    await picture("failed");
    await allProblems();
    return rows;
  });

  await step("endless", async () => {
    await tidy();
    await open("endless.vcp");
    await press("▶ Run", page.locator(".tab", { hasText: "demo:endless · ✗" }));
    return await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
  });

  await step("chained", async () => {
    await tidy();
    await open("chain.md");
    await lens("Run with first").waitFor();
    const lenses = await texts(".codelens-decoration a");
    await press("Run with first", page.locator(".tab", { hasText: "demo:form · ✗" }));
    await page.keyboard.press("Control+Shift+M");
    const row = page.locator(".markers-panel .monaco-list-row", { hasText: "did not give what is expected" }).first();
    await row.waitFor();
    const problem = await row.innerText();
    await hidePanel();
    return { lenses, problem };
  });

  await step("tests", async () => {
    await run("Testing: Focus on Test Explorer View");
    const rows = page.locator(".test-explorer .monaco-list-row");
    await rows.first().waitFor();
    await run("Test: Run All Tests");
    await page.locator(".test-explorer .monaco-list-row .codicon-testing-failed-icon, .test-explorer .testing-run-glyph.codicon-testing-failed-icon").first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".test-explorer .monaco-list-row .codicon-testing-failed-icon").length >= 2);
    const found = await texts(".test-explorer .monaco-list-row");
    await picture("tests");
    return found;
  });

  await step("testTrace", async () => {
    await run("Testing: Focus on Test Explorer View");
    await page.locator(".test-explorer .monaco-list-row", { hasText: "demo:echo" }).first().click({ button: "right" });
    await page.locator(".monaco-menu .action-item", { hasText: "Execute Using Profile" }).first().hover();
    await page.keyboard.press("Enter");
    await pick("Run with Permission Trace");
    await run("Test: Show Output");
    await page.locator(".part.panel", { hasText: "granted:" }).first().waitFor();
    await picture("trace");
    const found = await texts(".part.panel");
    await hidePanel();
    return found;
  });

  await step("testDiff", async () => {
    await run("Test: Peek Output");
    await page.locator(".monaco-diff-editor").first().waitFor();
    const found = await texts(".monaco-diff-editor .view-lines");
    await picture("diff");
    await page.keyboard.press("Escape");
    return found;
  });

  await step("coverage", async () => {
    await tidy();
    await open("empty.tool.json");
    await run("Test: Run All Tests with Coverage");
    const covered = file("text-statistics");
    await covered.filter({ hasText: "%" }).waitFor();
    const told = { folder: await covered.innerText() };
    if ((await covered.getAttribute("aria-expanded")) === "false") await covered.click();
    await file("text-statistics.tool.json").dblclick();
    const marks = page.locator(".coverage-deco-gutter");
    await marks.first().waitFor();
    await hidePanel();
    told.hit = await page.locator(".coverage-deco-gutter.coverage-deco-hit").count();
    told.missed = await page.locator(".coverage-deco-gutter.coverage-deco-miss").count();
    await picture("coverage");
    return told;
  });

  await step("tried", async () => {
    await tidy();
    await open("chain.md");
    await page.keyboard.press("Control+End");
    await run("Tamis: Try a Tool");
    await picks().filter({ hasText: "demo:" }).first().waitFor();
    const tools = await texts(".quick-input-list .monaco-list-row .label-name");
    await pick("demo:form");
    const form = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
    const field = (name) => form.locator(`[data-name="${name}"]`);
    const button = (kind) => form.locator(`button[data-kind="${kind}"]`);
    await field("text").waitFor();
    const told = {
      tools,
      fields: await form.locator("[data-name]").evaluateAll((all) => all.map((one) => [one.dataset.name, one.tagName])),
      hidden: await field("key").getAttribute("type"),
      bold: await form.locator("b").count(),
    };
    await field("text").fill("<b>你好</b>");
    await field("count").fill("2");
    await field("mode").selectOption('"loud"');
    await field("key").fill("hunter22-secret");
    await button("run").click();
    await form.locator("#out", { hasText: "ms" }).waitFor();
    told.out = await form.locator("#out").innerText();
    await field("count").fill("1.5");
    await button("run").click();
    await form.locator(".wrong", { hasText: "whole" }).waitFor();
    told.missing = await form.locator(".wrong").allInnerTexts();
    await field("count").fill("2");
    told.mended = (await form.locator(".wrong").allInnerTexts()).join("");
    await picture("try");
    await button("write").click();
    await page.locator(".view-lines", { hasText: "secret:KEY" }).first().waitFor();
    told.written = (await texts(".view-lines")).join("\n");
    return told;
  });

  await step("walkthrough", async () => {
    await run("Tamis: Open Walkthrough");
    await page.locator(".getting-started-category, .gettingStartedCategoriesContainer, .getting-started-step").first().waitFor();
    await page.locator(".step-title", { hasText: "Run an example" }).first().waitFor();
    await picture("walkthrough");
    return await texts(".step-title");
  });

  await step("newManifest", async () => {
    await tidy();
    await run("Tamis: New Tool Manifest");
    await page.locator(".quick-input-widget input").first().fill("made:shout");
    await page.keyboard.press("Enter");
    await pick("python");
    await page.locator(".tab.active", { hasText: "tool.json" }).first().waitFor();
    await picture("new");
    return { tab: await page.locator(".tab.active").first().innerText(), text: (await texts(".view-lines")).join("\n") };
  });

  await step("task", async () => {
    await tidy();
    await run("Tasks: Run Build Task");
    const offered = picks().filter({ hasText: "check" }).first();
    await offered.or(page.locator(".terminal-wrapper")).first().waitFor();
    if (await offered.isVisible()) await offered.click();
    // The server leaves this folder out, the task does not.
    await page.locator(".terminal-wrapper").first().waitFor();
    const rows = await problemsWith("by_task", 2);
    await picture("task");
    await allProblems();
    return rows;
  });

  await step("comments", async () => {
    await tidy();
    writeFileSync(`${config.folder}/commented.tool.json`, '{\n  // its name\n  "toolId": "demo:commented"\n}\n');
    await open("commented.tool.json");
    await page.locator(".squiggly-error, .squiggly-warning").first().waitFor();
    await ask(["Control+."], page.locator(".action-widget .monaco-list-row", { hasText: "Remove" }), [2, 4]);
    const found = await texts(".action-widget .monaco-list-row");
    await picture("comments");
    await page.keyboard.press("Escape");
    return found;
  });

  await step("languages", async () => {
    await tidy();
    const told = {};
    for (const name of ["batch.tam", "fails.vcp", "calls.md", "closed.tool.json"]) {
      await open(name);
      told[name] = await page.locator('.statusbar-item[id="status.editor.mode"]').first().innerText();
      if (name === "batch.tam") await picture("languages");
    }
    return told;
  });

  await step("settingsPage", async () => {
    await tidy();
    await run("Preferences: Open Settings (UI)");
    await page.locator(".settings-editor .settings-header .monaco-editor").first().click();
    await page.keyboard.type("@ext:tamis.tamis");
    await page.locator(".settings-editor .setting-item-contents", { hasText: "What of the traffic" }).first().waitFor();
    // A group has its count a moment after its name.
    await page.locator(".settings-editor .settings-toc-container .monaco-list-row", { hasText: /Running\s*\(\d+\)/ }).first().waitFor();
    const told = { count: await page.locator(".settings-count-widget").first().innerText(), groups: await texts(".settings-editor .settings-toc-container .monaco-list-row") };
    await hidePanel();
    await picture("settings");
    return told;
  });

  await step("channel", async () => {
    await tidy();
    await run("Tamis: Show Client Log");
    const lines = page.locator(".part.panel .view-lines").filter({ hasText: /on the PATH|tamis\.path/ }).first();
    await bring(lines, async () => {
      await run("Output: Focus on Output View");
      await page.keyboard.press("Control+Home");
    });
    await picture("channel");
    const told = await lines.innerText();
    await hidePanel();
    return told;
  });

  await step("gallery", async () => {
    await tidy();
    await run("Extensions: Show Installed Extensions");
    await page.locator(".extensions-list .monaco-list-row", { hasText: "Tamis" }).first().click();
    const shown = page.locator(".extension-editor");
    await shown.locator(".name", { hasText: "Tamis" }).first().waitFor();
    const icon = shown.locator("img.icon, .icon-container img").first();
    await page.waitForFunction(() => [...document.querySelectorAll(".extension-editor img")].some((image) => image.naturalWidth > 0));
    await picture("gallery");
    return { name: await shown.locator(".name").first().innerText(), icon: await icon.evaluate((image) => image.naturalWidth), words: await shown.innerText() };
  });

  await step("mcp", async () => {
    await tidy();
    const tamis = picks().filter({ hasText: "Tamis: " });
    const list = async () => {
      await page.keyboard.press("Escape");
      await run("MCP: List Servers");
      // its own row, not the command "MCP: Add Server" of the palette that was open before
      await page.locator(".quick-input-list .label-name", { hasText: /^\s*Add\sServer/ }).first().waitFor();
    };
    await list();
    const told = { before: await texts(".quick-input-list .monaco-list-row") };
    // As a person who edits the settings says it.
    const settings = JSON.parse(readFileSync(config.settings, "utf8"));
    const say = (register) => writeFileSync(config.settings, JSON.stringify({ ...settings, "tamis.mcp.register": register }));
    say(true);
    await bring(tamis, list);
    told.offered = await texts(".quick-input-list .monaco-list-row .label-name");
    await picture("mcp");
    await tamis.first().click();
    await pick("Show Output");
    const lines = page.locator(".part.panel .view-lines", { hasText: /Discovered.\d+.tools/ }).first();
    await lines.waitFor();
    told.output = await lines.innerText();
    await hidePanel();
    say(false);
    // The servers come into the list a moment after its own row, and the settings are read a moment after they were written.
    for (const end = Date.now() + config.patience; Date.now() < end; ) {
      await list();
      await page.waitForTimeout(1000);
      told.after = await texts(".quick-input-list .monaco-list-row");
      if (!told.after.some((row) => row.includes("Tamis"))) break;
    }
    await page.keyboard.press("Escape");
    return told;
  });

  await leave();
}

/** Two folders with a server of another version; a folder whose first manifest comes later. */
export async function otherFolders(newWindow, config) {
  const { page, step, leave, open, bring, status, visit, file, texts, lens, hidePanel, trust, until, picture } = await newWindow();

  await step("folders", async () => {
    await visit("workspace", config.workspace, "second");
    // The workspace names the old server, and counts once it is trusted.
    await trust();
    await bring(file("ask.tam"), async () => {
      if ((await file("first").getAttribute("aria-expanded")) === "false") await file("first").click();
    });
    await file("ask.tam").dblclick();
    await lens("▶ Run").waitFor();
    const told = { status: await status("tamis 0.0.9 ·"), servers: servers(config, ...config.both).length };
    await picture("folders");
    await page.keyboard.press("Control+Shift+M");
    await page.locator(".markers-panel .monaco-list-row", { hasText: "closed.tool.json" }).first().waitFor();
    told.problems = await texts(".markers-panel .monaco-list-row");
    await hidePanel();
    return told;
  });

  await step("first", async () => {
    // A folder without a manifest: nothing is started until one comes.
    await visit("folder", config.empty, "tools");
    await until("the look for manifests", () => logged(config, "", /nothing here is ours/g) > 0);
    const before = servers(config, config.empty).length;
    writeFileSync(`${config.empty}/tools/first.tool.json`, '{"toolId": "first:one"}\n');
    await open("first.tool.json");
    await page.locator(".squiggly-error").first().waitFor();
    return { before };
  });

  await leave();
}
