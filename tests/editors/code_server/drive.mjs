// Drives VS Code in a headless browser as a user does, and says as one JSON document what could be seen.
// usage: node drive.mjs CONFIG.json   (config: playwright, chromium, url, folder, empty, shots)
import { createRequire } from "node:module";
import { readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(config.playwright)("playwright-core");
const seen = { steps: [] };

const browser = await chromium.launch({
  executablePath: config.chromium,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
const page = await context.newPage();
page.setDefaultTimeout(config.patience ?? 20000);

// Where the page turns to: telemetry would be an address that is not ours.
const hosts = new Set();
context.on("request", (request) => { if (/^(?:https?|wss?):/.test(request.url())) hosts.add(new URL(request.url()).host); });

async function step(name, work) {
  if (config.only ? !config.only.includes(name) : name === "folders") return;
  const started = Date.now();
  try {
    seen[name] = (await work()) ?? true;
  } catch (error) {
    seen[name] = null;
    seen.failure ??= { step: name, error: String(error).slice(0, 2000) };
    await page.screenshot({ path: `${config.shots}/failed-${name}.png` }).catch(() => {});
    // What is open would be in the way of every step that follows.
    for (let times = 0; times < 3; times += 1) await page.keyboard.press("Escape");
  }
  if (config.steps) await page.screenshot({ path: `${config.shots}/step-${name}.png` }).catch(() => {});
  seen.steps.push([name, Date.now() - started]);
}

async function run(title) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input").fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor();
  await page.keyboard.press("Enter");
}

async function open(name) {
  // The explorer, because the search for files needs a program that this installation does not bring.
  const row = (text) => page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${text}"]`).first();
  await row("tools").waitFor();
  if ((await row("tools").getAttribute("aria-expanded")) === "false") {
    await row("tools").click();
  }
  // On a loaded machine the browser may draw no frame for long, and then playwright waits for the row to be scrolled to until
  // its time is over: the mouse needs no frame.
  const tab = page.locator(`.tab.active[data-resource-name="${name}"]`);
  for (let attempt = 1; ; attempt += 1) {
    try {
      await row(name).dblclick({ timeout: 8000 });
      await tab.first().waitFor({ timeout: 8000 });
      break;
    } catch (error) {
      if (attempt === 5) throw error;
      const box = await row(name).boundingBox();
      if (box !== null) await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
    }
  }
  await page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
}

async function goto(line, column) {
  await page.keyboard.press("Control+G");
  await page.locator(".quick-input-widget input").fill(`:${line}:${column}`);
  await page.keyboard.press("Enter");
  await page.locator(".quick-input-widget").waitFor({ state: "hidden" });
}

// On a loaded machine what a key opens may come before what it is to show, and then never has it: a user presses again.
async function ask(keys, wanted, at) {
  for (let attempt = 1; ; attempt += 1) {
    if (at !== undefined) await goto(at[0], at[1]);
    for (const key of keys) await page.keyboard.press(key);
    try {
      return await wanted.first().waitFor({ timeout: 8000 });
    } catch (error) {
      if (attempt === 4) throw error;
      await page.keyboard.press("Escape");
    }
  }
}

const texts = (selector) => page.locator(selector).allInnerTexts();
const lens = (text) => page.locator(".codelens-decoration a", { hasText: text }).first();
const picks = () => page.locator(".quick-input-list .monaco-list-row");
const toast = () => page.locator(".notification-toast");
const bar = () => page.locator('.statusbar-item[id="tamis.tamis.tamis.run"], .statusbar-item[id*="tamis.run"]').first();

async function pick(text) {
  await picks().filter({ hasText: text }).first().waitFor();
  await page.locator(".quick-input-widget:not([style*='display: none']) .quick-input-filter input").fill(text);
  await picks().filter({ hasText: text }).first().waitFor();
  await page.keyboard.press("Enter");
}

async function hidePanel() {
  if (await page.locator(".part.panel").first().isVisible()) await page.keyboard.press("Control+J");
  await page.locator(".part.panel").first().waitFor({ state: "hidden" });
}

/** The rows of the problems that hold a text, once there are so many (files are rows too). */
async function problemsWith(text, least = 1) {
  if (!(await page.locator(".markers-panel").first().isVisible())) await page.keyboard.press("Control+Shift+M");
  await page.locator('.part.panel input[placeholder^="Filter"], .part.panel .viewpane-filter input').first().fill(text);
  const rows = page.locator(".markers-panel .monaco-list-row");
  await page.locator(".markers-panel .monaco-list-row", { hasText: text }).first().waitFor();
  await rows.nth(least - 1).waitFor();
  await page.waitForTimeout(500);
  return await texts(".markers-panel .monaco-list-row");
}

async function allProblems() {
  await page.locator('.part.panel input[placeholder^="Filter"], .part.panel .viewpane-filter input').first().fill("");
  // The filter is taken after a moment, and not while the panel is hidden.
  await page.locator(".markers-panel .monaco-list-row", { hasText: "closed.tool.json" }).first().waitFor();
  await page.waitForTimeout(500);
  await hidePanel();
}

async function close() {
  await page.locator(".tab.active .codicon-close").first().click();
}

/** Only the explorer and one file: what earlier steps opened is put away. */
async function tidy() {
  await page.keyboard.press("Escape");
  const unsaved = await page.locator(".tab.dirty").count();
  if ((await page.locator(".tab").count()) > 0) await run("View: Close All Editors");
  if (unsaved > 0) await page.locator(".monaco-dialog-box .monaco-button", { hasText: "Don't Save" }).first().click();
  await page.waitForFunction(() => document.querySelectorAll(".editor-instance, .tab").length === 0);
  if ((await toast().count()) > 0) await run("Notifications: Clear All Notifications");
  if (!(await page.locator(".explorer-folders-view").first().isVisible())) await run("View: Show Explorer");
}

/** How often the client's log says something. */
function logged(pattern) {
  const files = readdirSync(config.logs, { recursive: true }).filter((name) => /[\\/]Tamis\.log$/.test(name));
  return files.reduce((sum, name) => sum + (readFileSync(`${config.logs}/${name}`, "utf8").match(pattern)?.length ?? 0), 0);
}

async function until(what, holds) {
  for (let tries = 0; tries < 400; tries += 1) {
    if (holds()) return;
    await page.waitForTimeout(50);
  }
  throw new Error(`waited in vain for ${what}`);
}

/** A picture for the documentation: what moves on the screen is let come to rest first. */
async function picture(name, options = {}) {
  if (!config.pictures) return;
  await page.waitForTimeout(700);
  await page.screenshot({ path: `${config.shots}/${name}.png`, ...options });
  await page.screenshot({ path: `${config.shots}/${name}.jpg`, quality: 55, ...options });
}

const answered = (pattern) =>
  page.waitForFunction((text) => [...document.querySelectorAll(".statusbar-item")].some((one) => new RegExp(text).test(one.textContent + (one.getAttribute("aria-label") ?? ""))), pattern);

await step("workbench", async () => {
  await page.goto(`${config.url}/?folder=${encodeURIComponent(config.folder)}`, { timeout: 60000 });
  await page.locator(".monaco-workbench .explorer-folders-view").waitFor();
});

await step("untrusted", async () => {
  await open("calls.md");
  await page.locator(".codelens-decoration", { hasText: "Trust the workspace" }).first().waitFor({ timeout: 60000 });
  return await texts(".codelens-decoration");
});

await step("trusted", async () => {
  await run("Workspaces: Manage Workspace Trust");
  await page.locator(".workspace-trust-editor .monaco-button", { hasText: "Trust" }).first().click();
  await close();
  await open("calls.md");
  await lens("Run").waitFor();
  return await texts(".codelens-decoration a");
});

await step("squiggle", async () => {
  await open("weather.tool.json");
  await page.locator(".squiggly-error").first().waitFor();
});

await step("problems", async () => {
  await page.keyboard.press("Control+Shift+M");
  const rows = page.locator(".markers-panel .monaco-list-row");
  // Of the file that is not open too.
  await page.locator(".markers-panel .monaco-list-row", { hasText: "closed.tool.json" }).first().waitFor();
  const found = await rows.evaluateAll((all) => all.map((row) => `${row.querySelector(".marker-icon, .codicon")?.className ?? ""} ${row.innerText}`));
  return found;
});

await step("completion", async () => {
  await page.keyboard.press("Control+Shift+M");
  await open("weather.tool.json");
  await ask(["Control+Space"], page.locator(".suggest-widget .monaco-list-row"), config.completeAt);
  const found = await texts(".suggest-widget .monaco-list-row .label-name");
  await page.keyboard.press("Escape");
  return found;
});

await step("hoverManifest", async () => {
  await ask(["Control+K", "Control+I"], page.locator(".monaco-hover .hover-contents:visible"), config.hoverKeyAt);
  const found = await texts(".monaco-hover .hover-contents:visible");
  await page.keyboard.press("Escape");
  return found;
});

await step("lens", async () => {
  await open("calls.md");
  await page.locator(".codelens-decoration a").first().waitFor();
  return await texts(".codelens-decoration a");
});

await step("scopes", async () => {
  await goto(config.hoverAt[0], config.hoverAt[1]);
  await run("Developer: Inspect Editor Tokens and Scopes");
  await page.locator(".token-inspect-widget").waitFor();
  await page.waitForFunction(() => document.querySelector(".token-inspect-widget")?.textContent?.includes("textmate scopes"));
  const found = await texts(".token-inspect-widget");
  await page.keyboard.press("Escape");
  return found.join("\n");
});

await step("hover", async () => {
  await ask(["Control+K", "Control+I"], page.locator(".monaco-hover .hover-contents:visible"), config.hoverAt);
  const found = await texts(".monaco-hover .hover-contents:visible");
  await page.keyboard.press("Escape");
  return found;
});

await step("fixes", async () => {
  await ask(["Control+."], page.locator(".action-widget .monaco-list-row"), config.fixAt);
  const found = await texts(".action-widget .monaco-list-row");
  await page.keyboard.press("Escape");
  return found;
});

await step("ran", async () => {
  await lens("Run").click();
  const tab = page.locator(".tab", { hasText: "text:statistics · ✓" }).first();
  await tab.waitFor();
  await page.locator(".view-lines", { hasText: '"outcome"' }).first().waitFor();
  const lines = page.locator(".view-lines", { hasText: '"outcome"' }).first();
  return { tab: await tab.innerText(), text: await lines.innerText(), status: await bar().innerText() };
});

await step("referencesPeek", async () => {
  await tidy();
  await open("calls.md");
  await lens("reference").click();
  await page.locator(".reference-zone-widget .monaco-list-row").first().waitFor();
  const found = await texts(".reference-zone-widget .monaco-list-row");
  await page.keyboard.press("Escape");
  return found;
});

await step("copied", async () => {
  await lens("Copy as").click();
  await pick("tamis call");
  await toast().filter({ hasText: "Copied" }).first().waitFor();
  const forms = await page.evaluate(() => navigator.clipboard.readText());
  await run("Notifications: Clear All Notifications");
  return forms;
});

await step("plainText", async () => {
  await open("notes.txt");
  await lens("Run").waitFor();
  return await texts(".codelens-decoration a");
});

await step("asked", async () => {
  await open("ask.tam");
  await lens("Run").click();
  await toast().filter({ hasText: "Risk" }).first().waitFor();
  const question = toast().filter({ hasText: "Risk" }).first();
  const told = { toast: await question.innerText(), buttons: await question.locator(".monaco-button").allInnerTexts() };
  await picture("approval");
  await question.locator(".monaco-button", { hasText: "More" }).first().click();
  await picks().first().waitFor();
  told.all = await texts(".quick-input-list .monaco-list-row .label-name");
  await picks().filter({ hasText: "Details" }).first().click();
  await page.locator(".tab", { hasText: "demo:ask?" }).first().waitFor();
  told.details = await page.locator(".view-lines", { hasText: '"permissions"' }).first().innerText();
  await picks().filter({ hasText: "Allow once" }).first().click();
  await page.locator(".tab", { hasText: "demo:ask · ✓" }).first().waitFor();
  return told;
});

await step("edited", async () => {
  await tidy();
  await open("ask.tam");
  await lens("Run").click();
  await page.locator(".notification-toast .monaco-button", { hasText: "More" }).first().click();
  await pick("Edit arguments");
  await page.locator(".quick-input-title", { hasText: "Arguments of" }).first().waitFor();
  const typed = async (text) => {
    await page.keyboard.press("Control+A");
    await page.keyboard.insertText(text);
  };
  await typed('{"text": ');
  await page.locator(".quick-input-message", { hasText: /JSON|position/ }).first().waitFor();
  await typed('{"text": "edited"}');
  await page.keyboard.press("Enter");
  await page.locator(".tab", { hasText: "demo:ask · ✓" }).first().waitFor();
  return await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
});

await step("several", async () => {
  await tidy();
  await open("batch.tam");
  await lens("Run").click();
  await picks().filter({ hasText: "demo:ask" }).nth(1).waitFor();
  const asked = { title: await page.locator(".quick-input-title").first().innerText(), rows: await texts(".quick-input-list .monaco-list-row") };
  await picture("several");
  await picks().filter({ hasText: "second" }).first().click();
  await page.keyboard.press("Enter");
  await page.locator(".tab", { hasText: "✗" }).first().waitFor();
  return { ...asked, text: await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText() };
});

await step("elicited", async () => {
  await tidy();
  await open("questions.vcp");
  await lens("Run").click();
  const question = (text) => toast().filter({ hasText: text }).first();
  await question("Which colour").waitFor();
  const told = { toast: await question("Which colour").innerText(), buttons: await question("Which colour").locator(".monaco-button").allInnerTexts() };
  await question("Which colour").locator(".monaco-button", { hasText: "Answer" }).first().click();
  await picks().first().waitFor();
  told.title = await page.locator(".quick-input-title").first().innerText();
  told.values = await texts(".quick-input-widget:visible .quick-input-list .monaco-list-row .label-name");
  await picture("question");
  await pick("blue");
  await question("Overwrite").locator(".monaco-button", { hasText: "Decline" }).first().click();
  await question("Go on").locator(".monaco-button", { hasText: "Answer" }).first().click();
  await picks().first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".tab", { hasText: "mcp:question · ✓" }).first().waitFor();
  told.text = await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
  return told;
});

await step("standing", async () => {
  await tidy();
  await open("ask.tam");
  await lens("Run").click();
  await page.locator(".notification-toast .monaco-button", { hasText: "More" }).first().click();
  await pick("Allow for this session");
  await page.locator(".tab", { hasText: "demo:ask · ✓" }).first().waitFor();
  await run("Tamis: Manage Approvals");
  await picks().filter({ hasText: "demo:ask" }).first().waitFor();
  const held = await texts(".quick-input-list .monaco-list-row");
  await picks().first().click();
  await page.keyboard.press("Enter");
  await run("Tamis: Manage Approvals");
  await toast().filter({ hasText: "no answers hold" }).first().waitFor();
  return held;
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
  await lens("Run").click();
  await page.locator(".tab", { hasText: "demo:fails · ✗" }).first().waitFor();
  const rows = await problemsWith("out of luck", 2);
  await picture("failed");
  await allProblems();
  return rows;
});

await step("endless", async () => {
  await tidy();
  await open("endless.vcp");
  await lens("Run").click();
  await page.locator(".tab", { hasText: "demo:endless · ✗" }).first().waitFor();
  return await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
});

await step("denied", async () => {
  await tidy();
  await open("ask.tam");
  await lens("Run").click();
  await page.locator(".notification-toast .monaco-button", { hasText: "Deny" }).first().click();
  await page.locator(".tab", { hasText: "demo:ask · ✗" }).first().waitFor();
});

await step("dryRun", async () => {
  await tidy();
  await open("ask.tam");
  await lens("Dry run").click();
  await page.locator(".tab", { hasText: "demo:ask · ✓" }).first().waitFor();
  const lines = page.locator(".view-lines", { hasText: '"outcome"' }).first();
  await lines.waitFor();
  return { text: await lines.innerText(), asked: (await texts(".notification-toast")).filter((text) => text.includes("Risk")) };
});

await step("cancelled", async () => {
  await tidy();
  await open("sleep.vcp");
  await lens("Run").click();
  await answered("demo:sleep \\d+\\.\\ds");
  const told = { running: await bar().innerText(), progress: await texts(".notification-toast") };
  await picture("running");
  await bar().click();
  await page.locator(".tab", { hasText: "demo:sleep · ✗" }).first().waitFor();
  return told;
});

await step("history", async () => {
  await run("Tamis: Show History");
  await picks().first().waitFor();
  const found = await texts(".quick-input-list .monaco-list-row .label-name");
  await page.locator(".quick-input-widget input").first().fill("text:statistics");
  await picks().filter({ hasText: "text:statistics" }).first().waitFor();
  found.push(...(await texts(".quick-input-list .monaco-list-row .label-name")));
  await page.keyboard.press("Escape");
  return found;
});

await step("rerun", async () => {
  await tidy();
  await open("calls.md");
  await goto(4, 8);
  await page.keyboard.press("Control+Alt+Enter");
  await page.locator(".tab", { hasText: "text:statistics · ✓" }).first().waitFor();
  await tidy();
  await open("calls.md");
  await goto(4, 8);
  await page.keyboard.press("Control+Alt+L");
  await page.locator(".tab", { hasText: "text:statistics · ✓" }).first().waitFor();
});

await step("status", async () => {
  await open("calls.md");
  const item = page.locator('.statusbar-item[id="status.languageStatus"]').first();
  await item.hover();
  await page.locator(".hover-language-status .element").first().waitFor();
  return await texts(".hover-language-status .element");
});

await step("debugInformation", async () => {
  await tidy();
  await run("Tamis: Print Debug Information");
  await page.locator(".view-lines", { hasText: "program" }).first().waitFor();
  return (await texts(".view-lines")).join("\n");
});

await step("commands", async () => {
  await tidy();
  await open("calls.md");
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input").fill(">Tamis: ");
  await picks().filter({ hasText: "Tamis: " }).first().waitFor();
  const found = new Set();
  for (let times = 0; times < 5; times += 1) {
    for (const text of await texts(".quick-input-list .monaco-list-row .label-name")) found.add(text);
    await page.keyboard.press("PageDown");
  }
  await page.keyboard.press("Escape");
  return [...found].filter((text) => text.startsWith("Tamis: "));
});

await step("chained", async () => {
  await tidy();
  await open("chain.md");
  await lens("Run with first").waitFor();
  const lenses = await texts(".codelens-decoration a");
  await lens("Run with first").click();
  await page.locator(".tab", { hasText: "demo:form · ✗" }).first().waitFor();
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
  await page.locator(".test-explorer .monaco-list-row", { hasText: "demo:echo" }).first().click({ button: "right" });
  await page.locator(".monaco-menu .action-item", { hasText: "Execute Using Profile" }).first().hover();
  await page.keyboard.press("Enter");
  await pick("Run with Permission Trace");
  await run("Test: Show Output");
  await page.waitForTimeout(1500);
  await picture("trace");
  const found = await texts(".testing-results, .test-output-peek, .terminal-wrapper, .part.panel");
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
  return await texts(".step-title");
});

await step("newManifest", async () => {
  await tidy();
  await run("Tamis: New Tool Manifest");
  await page.locator(".quick-input-widget input").first().fill("made:shout");
  await page.keyboard.press("Enter");
  await pick("python");
  await page.locator(".tab.active", { hasText: "tool.json" }).first().waitFor();
  return { tab: await page.locator(".tab.active").first().innerText(), text: (await texts(".view-lines")).join("\n") };
});

await step("snippets", async () => {
  await tidy();
  await open("empty.tool.json");
  await page.keyboard.type("tamis-s");
  await ask(["Control+Space"], page.locator(".suggest-widget .monaco-list-row", { hasText: "tamis-service" }));
  const found = await texts(".suggest-widget .monaco-list-row .label-name");
  await page.keyboard.press("Escape");
  return found;
});

await step("picture", async () => {
  await tidy();
  await open("weather.tool.json");
  await run("View: Move Editor into Right Group");
  await page.keyboard.press("Control+Shift+M");
  await page.keyboard.press("Control+1");
  await open("calls.md");
  await page.keyboard.press("Control+B");
  await lens("Run").click();
  await lens("characters").waitFor();
  await page.locator(".tab", { hasText: "text:statistics · ✓" }).first().waitFor();
  await page.locator(".tab", { hasText: "text:statistics · ✓" }).first().locator(".codicon-close").click();
  await ask(["Control+K", "Control+I"], page.locator(".monaco-hover .hover-contents:visible"), config.pictureAt);
  await picture("editor", { clip: { x: 0, y: 36, width: 1280, height: 610 } });
  const problems = await texts(".markers-panel .monaco-list-row");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+B");
  await run("View: Join All Editor Groups");
  await hidePanel();
  return problems;
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

await step("definition", async () => {
  await open("calls.md");
  await ask(["F12"], page.locator(".tab.active", { hasText: "tool.json" }), config.hoverAt);
  return await texts(".tab.active");
});

await step("renamed", async () => {
  await open("calls.md");
  await ask(["F2"], page.locator(".rename-box input:visible"), config.hoverAt);
  await page.locator(".rename-box input").fill("text:counts");
  await page.keyboard.press("Enter");
  await page.locator(".view-lines", { hasText: "text:counts" }).first().waitFor();
  return (await texts(".view-lines")).join("\n");
});

await step("fixed", async () => {
  await open("weather.tool.json");
  await page.locator(".squiggly-error").first().waitFor();
  await ask(["Control+."], page.locator(".action-widget .monaco-list-row", { hasText: "'python'" }), config.typeAt);
  await page.keyboard.press("Enter");
  await page.locator(".view-lines", { hasText: '"language": "python"' }).first().waitFor();
  return (await texts(".view-lines")).join("\n");
});

await step("typed", async () => {
  await open("calls.md");
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText("<|[REQUEST_TOOL]|>\ncommand:»»»tex");
  await ask(["Control+Space"], page.locator(".suggest-widget .monaco-list-row", { hasText: "text:" }));
  const found = await texts(".suggest-widget .monaco-list-row .label-name");
  await page.keyboard.press("Escape");
  return found;
});

// The language servers of this session: its processes have the session id of the one that was started.
function servers() {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const session = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3];
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return session === String(config.session) && words.includes("lsp") && readlinkSync(`/proc/${name}/cwd`) !== "";
    } catch {
      return false;
    }
  });
}

await step("twoWindows", async () => {
  const before = servers().length;
  const other = await context.newPage();
  await other.goto(`${config.url}/?folder=${encodeURIComponent(config.folder)}`, { timeout: 60000 });
  await other.locator('.explorer-folders-view .monaco-list-row[aria-label^="calls.md"]').first().dblclick();
  await other.locator(".codelens-decoration a", { hasText: "Run" }).first().waitFor();
  const found = { before, both: servers().length };
  await other.locator(".codelens-decoration a", { hasText: "Run" }).first().click();
  await other.locator(".tab", { hasText: "✓" }).first().waitFor();
  await other.close();
  // The first window goes on.
  await tidy();
  await open("notes.txt");
  await lens("Run").waitFor();
  await until("the other window's server to end", () => servers().length === before);
  return found;
});

await step("crashed", async () => {
  const told = [];
  // Until a server has answered, its end would be another case.
  const answers = logged(/server \d+\.\d+/g);
  for (let times = 1; times <= 5; times += 1) {
    await until(`server ${times}`, () => logged(/server \d+\.\d+/g) >= answers + times - 1);
    await page.waitForTimeout(400);
    const found = servers();
    told.push(found.length);
    for (const pid of found) process.kill(Number(pid), "SIGKILL");
  }
  await toast().filter({ hasText: "ended 5 times" }).first().waitFor();
  const buttons = await texts(".notification-toast .monaco-button");
  return { told, buttons };
});

await step("first", async () => {
  // A folder without a manifest: nothing is started until one comes.
  await page.goto(`${config.url}/?folder=${encodeURIComponent(config.empty)}`, { timeout: 60000 });
  await page.locator(".monaco-workbench .explorer-folders-view .monaco-list-row").first().waitFor();
  await until("the look for manifests", () => logged(/nothing here is ours/g) > 0);
  const before = servers().length;
  writeFileSync(`${config.empty}/tools/first.tool.json`, '{"toolId": "first:one"}\n');
  await open("first.tool.json");
  await page.locator(".squiggly-error").first().waitFor();
  return { before };
});

// A session of its own: two folders, a server of another version.

await step("folders", async () => {
  await page.goto(`${config.url}/?workspace=${encodeURIComponent(config.workspace)}`, { timeout: 60000 });
  const row = (text) => page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${text}"]`).first();
  await row("closed.tool.json").waitFor();
  if (!(await row("ask.tam").isVisible())) await row("first").click();
  await row("ask.tam").dblclick();
  await lens("Run").waitFor({ timeout: 60000 });
  const told = { servers: servers().length };
  await page.keyboard.press("Control+Shift+M");
  await page.locator(".markers-panel .monaco-list-row", { hasText: "closed.tool.json" }).first().waitFor();
  told.problems = await texts(".markers-panel .monaco-list-row");
  await hidePanel();
  await page.locator('.statusbar-item[id="status.languageStatus"]').first().hover();
  await page.locator(".hover-language-status .element", { hasText: "tamis 0.0.9 ·" }).first().waitFor();
  told.status = await texts(".hover-language-status .element");
  await picture("folders");
  return told;
});

seen.hosts = [...hosts];
writeFileSync(`${config.shots}/seen.json`, JSON.stringify(seen, null, 1));
process.stdout.write(JSON.stringify(seen));
await browser.close();
