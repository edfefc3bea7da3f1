// Drives VS Code in a headless browser as a user does, and says as one JSON document what could be seen.
// usage: node drive.mjs CONFIG.json   (config: playwright, chromium, url, folder, shots)
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";

const config = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { chromium } = createRequire(config.playwright)("playwright-core");
const seen = { steps: [] };

const browser = await chromium.launch({
  executablePath: config.chromium,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(config.patience ?? 30000);

async function step(name, work) {
  const started = Date.now();
  try {
    seen[name] = (await work()) ?? true;
  } catch (error) {
    seen[name] = null;
    seen.failure ??= { step: name, error: String(error).slice(0, 2000) };
    await page.screenshot({ path: `${config.shots}/failed-${name}.png` }).catch(() => {});
  }
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
  const row = (text) => page.locator(".explorer-folders-view .monaco-list-row", { hasText: text }).first();
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
      await tab.waitFor({ timeout: 8000 });
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

await step("workbench", async () => {
  await page.goto(`${config.url}/?folder=${encodeURIComponent(config.folder)}`);
  await page.locator(".monaco-workbench .explorer-folders-view").waitFor();
});

await step("untrusted", async () => {
  await open("calls.md");
  await page.locator(".codelens-decoration", { hasText: "Trust the workspace" }).first().waitFor();
  return await texts(".codelens-decoration");
});

await step("trusted", async () => {
  await run("Workspaces: Manage Workspace Trust");
  await page.locator(".workspace-trust-editor .monaco-button", { hasText: "Trust" }).first().click();
  await page.locator('.tab.active .codicon-close').first().click();
  await open("calls.md");
  await page.locator(".codelens-decoration a", { hasText: "Run" }).first().waitFor();
  return await texts(".codelens-decoration a");
});

await step("squiggle", async () => {
  await open("weather.tool.json");
  await page.locator(".squiggly-error").first().waitFor();
});

await step("problems", async () => {
  await page.keyboard.press("Control+Shift+M");
  const rows = page.locator(".markers-panel .monaco-list-row");
  await rows.nth(1).waitFor();
  return await texts(".markers-panel .monaco-list-row");
});

await step("completion", async () => {
  await page.keyboard.press("Control+Shift+M");
  await open("weather.tool.json");
  await ask(["Control+Space"], page.locator(".suggest-widget .monaco-list-row"), config.completeAt);
  const found = await texts(".suggest-widget .monaco-list-row .label-name");
  await page.keyboard.press("Escape");
  return found;
});

await step("lens", async () => {
  await open("calls.md");
  await page.locator(".codelens-decoration a").first().waitFor();
  return await texts(".codelens-decoration a");
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
  await page.locator(".codelens-decoration a", { hasText: "Run" }).first().click();
  await page.locator(".tab.active", { hasText: /^1\.json/ }).waitFor();
  await page.locator(".view-lines", { hasText: "outcome" }).first().waitFor();
  return (await texts(".view-lines")).join("\n");
});

await step("picture", async () => {
  await page.locator('.tab.active .codicon-close').first().click();
  await open("weather.tool.json");
  await run("View: Move Editor into Right Group");
  await page.keyboard.press("Control+Shift+M");
  await page.keyboard.press("Control+1");
  await open("calls.md");
  await page.keyboard.press("Control+B");
  await page.locator(".codelens-decoration a", { hasText: "characters" }).first().waitFor();
  await ask(["Control+K", "Control+I"], page.locator(".monaco-hover .hover-contents:visible"), config.pictureAt);
  await page.waitForTimeout(700);
  await page.screenshot({ path: `${config.shots}/editor.png`, clip: { x: 0, y: 36, width: 1280, height: 610 } });
  const problems = await texts(".markers-panel .monaco-list-row");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+B");
  await run("View: Join All Editor Groups");
  await page.keyboard.press("Control+Shift+M");
  await page.keyboard.press("Control+Shift+M");
  await page.locator(".markers-panel").waitFor({ state: "hidden" });
  return problems;
});

await step("definition", async () => {
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

writeFileSync(`${config.shots}/seen.json`, JSON.stringify(seen, null, 1));
process.stdout.write(JSON.stringify(seen));
await browser.close();
