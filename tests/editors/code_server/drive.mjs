// Drives VS Code in a headless browser as a user does, and says as one JSON document what could be seen.
// usage: node drive.mjs CONFIG.json   (config: playwright, chromium, url, folder, empty, workspace, shots)
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { logged, servers } from "./processes.mjs";
import { otherFolders, secondWindow } from "./others.mjs";
import { inChinese, lockedFolder, manyManifests, virtualFolder } from "./unusual.mjs";
import { windowOf } from "./window.mjs";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(config.playwright)("playwright-core");
const seen = { steps: [] };
// No machine is too slow for this; it ends what waits for something that never comes, with the words of what was open then. After two such steps the rest
// is not waited for.
Object.defineProperty(config, "patience", { get: () => ((seen.failure?.length ?? 0) > 1 ? 5000 : 300000) });

const browser = await chromium.launch({
  executablePath: config.chromium,
  timeout: 0,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// Where the pages turn to: telemetry would be an address that is not ours.
const hosts = new Set();

/** A window, of a profile of its own: a tab behind another one is not drawn, and then waits for ever. */
async function newWindow(how = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"], ...how });
  context.on("request", (request) => { if (/^(?:https?|wss?):/.test(request.url())) hosts.add(new URL(request.url()).host); });
  const page = await context.newPage();
  return windowOf(page, config, seen);
}

const first = await newWindow();
const { page, step, run, open, goto, ask, visit, texts, lens, press, begin, status, question, picks, toast, bar, watchBar, barTold, running, pick, hidePanel, trust, tidy, until, picture, answered } = first;

await step("workbench", async () => {
  await visit("folder", config.folder, "calls.md");
});

await step("untrusted", async () => {
  await open("calls.md");
  await page.locator(".codelens-decoration", { hasText: "Trust the workspace" }).first().waitFor();
  await picture("untrusted");
  return await texts(".codelens-decoration");
});

await step("trusted", async () => {
  await trust();
  await open("calls.md");
  await lens("▶ Run").waitFor();
  return await texts(".codelens-decoration a");
});

// What needs windows of its own is done beside the rest: most of a session is waiting. A window costs more than all that is done in it, so that the short
// session has one: what the second window would do comes later.
const all = config.without.length === 0;
const beside = all
  ? Promise.all([
    secondWindow(newWindow, config),
    [otherFolders, virtualFolder, manyManifests, lockedFolder, inChinese].reduce((before, window) => before.then(() => window(newWindow, config)), Promise.resolve()),
  ])
  : undefined;
const here = async () => ({ ...first, leave: async () => {} });

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
  await open("weather.tool.json");
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
  await open("calls.md");
  await goto(config.hoverAt[0], config.hoverAt[1]);
  await run("Developer: Inspect Editor Tokens and Scopes");
  await page.locator(".token-inspect-widget").waitFor();
  await page.waitForFunction(() => document.querySelector(".token-inspect-widget")?.textContent?.includes("textmate scopes"));
  const found = await texts(".token-inspect-widget");
  await page.keyboard.press("Escape");
  return found.join("\n");
});

await step("hover", async () => {
  await open("calls.md");
  await ask(["Control+K", "Control+I"], page.locator(".monaco-hover .hover-contents:visible"), config.hoverAt);
  const found = await texts(".monaco-hover .hover-contents:visible");
  await page.keyboard.press("Escape");
  return found;
});

await step("fixes", async () => {
  await open("calls.md");
  await ask(["Control+."], page.locator(".action-widget .monaco-list-row"), config.fixAt);
  const found = await texts(".action-widget .monaco-list-row");
  await picture("fixes");
  await page.keyboard.press("Escape");
  return found;
});

await step("ran", async () => {
  await open("calls.md");
  const tab = page.locator(".tab", { hasText: "text:statistics · ✓" }).first();
  await watchBar();
  await press("▶ Run", tab);
  await page.locator(".view-lines", { hasText: '"outcome"' }).first().waitFor();
  const lines = page.locator(".view-lines", { hasText: '"outcome"' }).first();
  // The document may be there before the answer of the call is.
  await running().waitFor({ state: "hidden" });
  return { tab: await tab.innerText(), text: await lines.innerText(), status: await barTold("\\d+ ms") };
});

await step("referencesPeek", async () => {
  await tidy();
  await open("calls.md");
  await press("reference", page.locator(".reference-zone-widget .monaco-list-row"));
  const found = await texts(".reference-zone-widget .monaco-list-row");
  await picture("references");
  await page.keyboard.press("Escape");
  return found;
});

await step("copied", async () => {
  await open("calls.md");
  await press("Copy as", picks());
  await pick("tamis call");
  await toast().filter({ hasText: "Copied" }).first().waitFor();
  const forms = await page.evaluate(() => navigator.clipboard.readText());
  await run("Notifications: Clear All Notifications");
  return forms;
});

await step("plainText", async () => {
  await open("notes.txt");
  await lens("▶ Run").waitFor();
  return await texts(".codelens-decoration a");
});

await step("asked", async () => {
  await open("ask.tam");
  await begin();
  const asked = await question("Risk");
  const told = { toast: await asked.innerText(), buttons: await asked.locator(".monaco-button").allInnerTexts() };
  await picture("approval");
  await asked.locator(".monaco-button", { hasText: "More" }).first().click();
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
  await begin();
  await (await question("Risk")).locator(".monaco-button", { hasText: "More" }).first().click();
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
  await press("▶ Run", picks().filter({ hasText: "demo:ask" }).nth(1));
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
  await begin();
  const colour = await question("Which colour");
  const told = { toast: await colour.innerText(), buttons: await colour.locator(".monaco-button").allInnerTexts() };
  await colour.locator(".monaco-button", { hasText: "Answer" }).first().click();
  await picks().first().waitFor();
  told.title = await page.locator(".quick-input-title").first().innerText();
  told.values = await texts(".quick-input-widget:visible .quick-input-list .monaco-list-row .label-name");
  await picture("question");
  await pick("blue");
  await (await question("Overwrite")).locator(".monaco-button", { hasText: "Decline" }).first().click();
  await (await question("Go on")).locator(".monaco-button", { hasText: "Answer" }).first().click();
  await picks().first().waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".tab", { hasText: "mcp:question · ✓" }).first().waitFor();
  told.text = await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
  return told;
});

await step("forms", async () => {
  await tidy();
  await open("forms.vcp");
  await begin();
  const input = page.locator(".quick-input-widget:visible .quick-input-filter input").first();
  const title = page.locator(".quick-input-widget:visible .quick-input-title").first();
  const message = page.locator(".quick-input-widget:visible .quick-input-message").first();
  const answer = async (text, button) => (await question(text)).locator(".monaco-button", { hasText: button }).first().click();
  const told = { steps: [], wrong: [] };
  const at = async (number) => {
    await title.filter({ hasText: `(${number}/6)` }).waitFor();
    told.steps.push(await title.innerText());
  };
  const type = async (text, wrong) => {
    await input.fill(text);
    if (wrong !== undefined) {
      await message.filter({ hasText: wrong }).waitFor();
      told.wrong.push(wrong);
      await input.fill(text);
    }
    await page.keyboard.press("Enter");
  };
  told.toast = await (await question("Which trip")).innerText();
  told.links = await (await question("Which trip")).locator(".notification-list-item-message a").count();
  await answer("Which trip", "Answer");
  await at(1);
  told.links += await page.locator(".quick-input-widget:visible a[href], .quick-input-title .codicon-flame").count();
  await picture("form");
  await type("O", "it has at least 2 characters");
  await type("Oslo");
  await at(2);
  told.prefilled = await input.inputValue();
  await page.locator(".quick-input-widget:visible .quick-input-titlebar .codicon-quick-input-back").first().click();
  await at(1);
  told.kept = await input.inputValue();
  await page.keyboard.press("Enter");
  await title.filter({ hasText: "(2/6)" }).waitFor();
  await type("0", "it is at least 1");
  await type("4");
  await at(3);
  await type("a", "it is an email address");
  await type("");
  await at(4);
  // What is suggested is what Enter takes.
  await page.locator(".quick-input-list .monaco-list-row.focused", { hasText: "yes" }).first().waitFor();
  await page.keyboard.press("Enter");
  await at(5);
  for (const name of ["early", "late"]) await picks().filter({ hasText: name }).first().click();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => [...document.querySelectorAll(".quick-input-widget input")].some((one) => one.placeholder.includes("it has at most")));
  told.few = await input.getAttribute("placeholder");
  await picks().filter({ hasText: "late" }).first().click();
  await page.keyboard.press("Enter");
  await picks().filter({ hasText: "Send to test" }).first().waitFor();
  told.details = await texts(".quick-input-widget:visible .quick-input-list .monaco-list-row .quick-input-list-label-meta:visible");
  // A row that was used before has what it showed then, hidden.
  told.review = await texts(".quick-input-widget:visible .quick-input-list .monaco-list-row .label-name:visible");
  await picture("form-review");
  await picks().filter({ hasText: "People" }).first().click();
  await title.filter({ hasText: "(2/6)" }).waitFor();
  await type("5");
  await picks().filter({ hasText: "Send to test" }).first().click();
  await answer("What name", "Decline");
  await answer("Which name now", "Answer");
  await title.filter({ hasText: "(1/2)" }).waitFor();
  await page.keyboard.press("Enter");
  await picks().filter({ hasText: "Send to test" }).first().waitFor();
  await page.keyboard.press("Escape");
  await answer("No name", "Answer");
  await title.filter({ hasText: "(1/2)" }).waitFor();
  await page.keyboard.press("Enter");
  await picks().filter({ hasText: "Decline" }).first().click();
  await page.locator(".tab", { hasText: "mcp:question · ✓" }).first().waitFor();
  told.text = await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
  return told;
});

await step("addresses", async () => {
  await tidy();
  await open("addresses.vcp");
  const opened = [];
  const context = page.context();
  await context.route("https://login.example.com:8443/**", (route) => {
    opened.push(route.request().url());
    return route.fulfill({ body: "opened" });
  });
  await begin();
  const dialog = page.locator(".monaco-dialog-box");
  const answer = async (text, button) => {
    await (await question(text)).locator(".monaco-button", { hasText: "Answer" }).first().click();
    await dialog.first().waitFor();
    if (button !== undefined) await dialog.locator(".monaco-button", { hasText: button }).first().click();
  };
  await answer("Log in");
  const told = { shown: await dialog.innerText(), buttons: await dialog.locator(".monaco-button").allInnerTexts(), before: [...opened] };
  await picture("address");
  const window = context.waitForEvent("page");
  await dialog.locator(".monaco-button", { hasText: "Open" }).first().click();
  // The editor asks by itself before it opens another host.
  const trusts = dialog.filter({ hasText: "external website" }).locator(".monaco-button", { hasText: "Open" }).first();
  const other = await Promise.race([window, trusts.waitFor().then(() => trusts.click()).then(() => window)]);
  await other.waitForLoadState().catch(() => {});
  await other.close();
  await answer("Log on", "Decline");
  await answer("Log out", "Cancel");
  await page.locator(".tab", { hasText: "mcp:question · ✓" }).first().waitFor();
  told.opened = opened;
  told.text = await page.locator(".view-lines", { hasText: '"outcome"' }).first().innerText();
  return told;
});

await step("standing", async () => {
  await tidy();
  await open("ask.tam");
  await begin();
  await (await question("Risk")).locator(".monaco-button", { hasText: "More" }).first().click();
  await pick("Allow for this session");
  await page.locator(".tab", { hasText: "demo:ask · ✓" }).first().waitFor();
  await run("Tamis: Manage Approvals");
  await picks().filter({ hasText: "demo:ask" }).first().waitFor();
  const held = await texts(".quick-input-list .monaco-list-row");
  await picks().first().click();
  await page.keyboard.press("Enter");
  // Asked before the answer is taken back, the list still has it.
  for (let attempt = 1; ; attempt += 1) {
    await run("Tamis: Manage Approvals");
    const none = toast().filter({ hasText: "no answers hold" }).first();
    await none.or(picks().filter({ hasText: "demo:ask" }).first()).first().waitFor();
    if ((await none.isVisible()) || attempt === 5) break;
    await page.keyboard.press("Escape");
  }
  return held;
});

await step("denied", async () => {
  await tidy();
  await open("ask.tam");
  await begin();
  await (await question("Risk")).locator(".monaco-button", { hasText: "Deny" }).first().click();
  await page.locator(".tab", { hasText: "demo:ask · ✗" }).first().waitFor();
});

await step("dryRun", async () => {
  await tidy();
  await open("ask.tam");
  await press("Dry run", page.locator(".tab", { hasText: "demo:ask · ✓" }));
  const lines = page.locator(".view-lines", { hasText: '"outcome"' }).first();
  await lines.waitFor();
  return { text: await lines.innerText(), asked: (await texts(".notification-toast")).filter((text) => text.includes("Risk")) };
});

await step("cancelled", async () => {
  await tidy();
  await open("sleep.vcp");
  await begin();
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
  return await status("tools");
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
  await picture("commands");
  const found = new Set();
  for (let times = 0; times < 5; times += 1) {
    for (const text of await texts(".quick-input-list .monaco-list-row .label-name")) found.add(text);
    await page.keyboard.press("PageDown");
  }
  await page.keyboard.press("Escape");
  return [...found].filter((text) => text.startsWith("Tamis: "));
});

await step("snippets", async () => {
  await tidy();
  await open("empty.tool.json");
  await page.keyboard.type("tamis-s");
  await ask(["Control+Space"], page.locator(".suggest-widget .monaco-list-row", { hasText: "tamis-service" }));
  const found = await texts(".suggest-widget .monaco-list-row .label-name");
  await picture("snippets");
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
  await press("▶ Run", lens("characters"));
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

await (all ? beside : secondWindow(here, config));

await step("crashed", async () => {
  const told = [];
  await until("the second window's server to end", () => servers(config, config.folder).length === 1);
  // Until a server has answered and told its state, its end would be another case.
  const up = () => logged(config, config.folder, /server \d+\.\d+[^]*?Received notification 'experimental\/serverStatus'/g);
  const before = up();
  for (let times = 1; times <= 5; times += 1) {
    await until(`server ${times}`, () => up() >= before + times - 1);
    const found = servers(config, config.folder);
    told.push(found.length);
    for (const pid of found) process.kill(Number(pid), "SIGKILL");
  }
  await toast().filter({ hasText: "ended 5 times" }).first().waitFor();
  const buttons = await texts(".notification-toast .monaco-button");
  await picture("crashed");
  return { told, buttons };
});

if (!all) await otherFolders(here, config);

seen.hosts = [...hosts];
writeFileSync(`${config.shots}/seen.json`, JSON.stringify(seen, null, 1));
process.stdout.write(JSON.stringify(seen));
await browser.close();
