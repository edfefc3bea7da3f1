// Folders that are not as most are: on no disk, of very many files, one that cannot be written to; and an editor in Chinese.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { logged, servers } from "./processes.mjs";

/** A workspace that an extension serves out of its memory: it is said why nothing is started, and nothing is. */
export async function virtualFolder(newWindow, config) {
  const { page, step, leave, run, bring, file, texts, toast, until, picture } = await newWindow();

  await step("virtual", async () => {
    const row = page.locator('.explorer-folders-view .monaco-list-row[aria-label^="first.tool.json"]').first();
    await bring(row, async () => {
      await page.goto(`${config.url}/?workspace=${encodeURIComponent(config.virtual)}`);
      const root = file("in memory");
      await root.waitFor();
      if ((await root.getAttribute("aria-expanded")) === "false") await root.click();
    }, { ms: 30000 });
    await row.dblclick();
    await page.locator('.tab.active[data-resource-name="first.tool.json"]').waitFor();
    await until("the client to say why", () => logged(config, "(memory:)", /nothing is started/g) > 0);
    await run("Tamis: Show History");
    const told = toast().filter({ hasText: "Tamis" }).first();
    await told.waitFor();
    await picture("virtual");
    return {
      told: await told.innerText(),
      // A window that had started a server would have looked for the program.
      begun: logged(config, "(memory:)", /starting: |tamis\.path|on the PATH|\[error\]/g),
      errors: (await texts(".notification-toast:has(.codicon-error)")).length,
    };
  });

  await leave();
}

/** A folder of 2,000 manifests, of which one is wrong. */
export async function manyManifests(newWindow, config) {
  const { page, step, leave, open, goto, visit, status, texts, trust, hidePanel, picture } = await newWindow();

  await step("many", async () => {
    await visit("folder", config.many, "tools");
    await trust();
    await open("a0000.tool.json");
    const told = { status: await status(/· 1999 tools/) };
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+Shift+M");
    await page.locator(".markers-panel .monaco-list-row", { hasText: "did you mean 'python'?" }).first().waitFor();
    told.problems = await texts(".markers-panel .monaco-list-row");
    await picture("many");
    await hidePanel();
    // What is typed is judged, and taken back, while the whole folder is known.
    await open("a0000.tool.json");
    await goto(3, 6);
    await page.keyboard.type("x");
    await page.locator(".squiggly-error, .squiggly-warning").first().waitFor();
    await page.keyboard.press("Backspace");
    await page.locator(".squiggly-error, .squiggly-warning").first().waitFor({ state: "detached" });
    return told;
  });

  await leave();
}

/** A folder in which this user may write nothing. */
export async function lockedFolder(newWindow, config) {
  const { page, step, leave, run, open, ask, visit, texts, trust, tidy, toast, picture } = await newWindow();
  const refused = async (text) => {
    const told = toast().filter({ hasText: text }).first();
    await told.waitFor();
    const words = await told.innerText();
    await run("Notifications: Clear All Notifications");
    return words;
  };

  await step("locked", async () => {
    await visit("folder", config.locked, "tools");
    await trust();
    await open("wrong.tool.json");
    await run("Tamis: New Tool Manifest");
    await page.locator(".quick-input-widget input").first().fill("made:shout");
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "python" }).first().click();
    const told = toast().filter({ hasText: "cannot write" }).first();
    await told.waitFor();
    await picture("locked");
    const found = { made: await refused("cannot write") };
    await tidy();
    await open("shout.py");
    await run("Tamis: New Manifest From Functions of This File");
    found.imported = await refused("cannot write");
    await open("wrong.tool.json");
    await page.locator(".squiggly-error").first().waitFor();
    await ask(["Control+."], page.locator(".action-widget .monaco-list-row", { hasText: "'python'" }), [9, 20]);
    await page.keyboard.press("Enter");
    await page.locator(".view-lines", { hasText: '"language": "python"' }).first().waitFor();
    await page.keyboard.press("Control+S");
    found.saved = await refused("Failed to save");
    return found;
  });

  await leave();
}

/** An editor whose language is Chinese; and a rename while a call of the tool goes on. */
export async function inChinese(newWindow, config) {
  const { page, step, leave, run, open, ask, visit, status, texts, trust, lens, begin, bring, tidy, question, picks, picture } = await newWindow({ locale: "zh-CN" });

  await step("chinese", async () => {
    await visit("folder", config.chinese, "tools");
    await trust();
    await open("ask.tam");
    await lens("▶ 运行").waitFor();
    await page.keyboard.press("F1");
    await page.locator(".quick-input-widget:visible .quick-input-filter input").fill(">重启服务器");
    await picks().filter({ hasText: "重启服务器" }).first().waitFor();
    const told = { command: await texts(".quick-input-list .monaco-list-row .label-name"), lenses: await texts(".codelens-decoration a") };
    await page.keyboard.press("Escape");
    await begin("▶ 运行");
    const asked = await question("运行 demo:ask？");
    told.toast = await asked.innerText();
    told.buttons = await asked.locator(".monaco-button").allInnerTexts();
    await picture("chinese");
    await asked.locator(".monaco-button", { hasText: "拒绝" }).first().click();
    await page.locator(".tab", { hasText: "demo:ask · ✗" }).first().waitFor();
    told.status = await status("个工具");
    return told;
  });

  const allow = (tool) =>
    bring(page.locator(".tab", { hasText: `${tool} · ✓` }), async () => {
      await (await question(`运行 ${tool}？`)).locator(".monaco-button", { hasText: "允许一次" }).first().click({ timeout: 10000 });
    });

  await step("renamedWhileRunning", async () => {
    await tidy();
    await open("ask.tam");
    await begin("▶ 运行");
    await question("demo:ask");
    await ask(["F2"], page.locator(".rename-box input:visible"), [2, 18]);
    await page.locator(".rename-box input").fill("demo:asked");
    await page.keyboard.press("Enter");
    // A manifest that is not open is changed after a look at it.
    const preview = page.locator(".bulk-edit-panel");
    await preview.locator(".monaco-list-row", { hasText: "x.tool.json" }).locator("input, .monaco-checkbox").first().click();
    await preview.locator(".monaco-button", { hasText: "Apply" }).first().click();
    await page.locator(".view-lines", { hasText: "demo:asked" }).first().waitFor();
    await picture("renamed");
    await allow("demo:ask");
    const told = { text: (await texts(".view-lines")).join("\n"), tabs: await texts(".tab") };
    await run("File: Save All");
    await page.locator(".tab.dirty").first().waitFor({ state: "detached" });
    // The name of the tool is another one now, for the next call too.
    await page.locator(".tab", { hasText: "ask.tam" }).first().click();
    await begin("▶ 运行");
    await allow("demo:asked");
    return told;
  });

  await leave();
}
