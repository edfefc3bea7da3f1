// One window of VS Code in the browser, and what a user does in any: open, go to, choose, wait for what is shown.

/** What can be done in a window; what its steps find is put into `seen`. */
export function windowOf(page, config, seen) {
  async function step(name, work) {
    if (config.only && !config.only.includes(name)) return;
    const started = Date.now();
    try {
      seen[name] = (await work()) ?? true;
    } catch (error) {
      seen[name] = null;
      const failed = { step: name, error: String(error).slice(0, 2000) };
      seen.failure = [...(seen.failure ?? []), failed];
      await page.screenshot({ path: `${config.shots}/failed-${name}.png` }).catch(() => {});
      // What is open would be in the way of every step that follows.
      for (let times = 0; times < 3; times += 1) await page.keyboard.press("Escape").catch(() => {});
    }
    if (config.steps) await page.screenshot({ path: `${config.shots}/step-${name}.png` }).catch(() => {});
    seen.steps.push([name, Date.now() - started]);
  }

  async function run(title) {
    const found = page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    // Right after a window has opened, its commands may not be there yet: a user opens the list again.
    for (let attempt = 1; ; attempt += 1) {
      await page.keyboard.press("F1");
      await page.locator(".quick-input-widget:visible .quick-input-filter input").fill(`>${title}`);
      try {
        await found.waitFor({ timeout: 5000 });
        break;
      } catch (error) {
        if (attempt === 4) throw error;
        await page.keyboard.press("Escape");
      }
    }
    await page.keyboard.press("Enter");
  }

  const file = (name) => page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`).first();

  /** Goes to a folder or workspace and waits for a row of its files. On a loaded machine a workspace may come up empty: a user reloads. */
  async function visit(kind, place, name) {
    const address = `${config.url}/?${kind}=${encodeURIComponent(place)}`;
    for (let attempt = 1; ; attempt += 1) {
      await page.goto(address, { timeout: 60000 });
      await page.locator(".monaco-workbench .explorer-folders-view, .monaco-workbench .explorer-viewlet .welcome-view").first().waitFor({ timeout: 60000 });
      try {
        return await file(name).waitFor({ timeout: attempt === 1 ? 6000 : 20000 });
      } catch (error) {
        if (attempt === 2) throw error;
      }
    }
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
  /** Presses a lens until what it brings is there: a lens that is drawn anew between press and release takes no click. */
  async function press(text, wanted) {
    for (let attempt = 1; ; attempt += 1) {
      await lens(text).click();
      try {
        return await wanted.first().waitFor({ timeout: 5000 });
      } catch (error) {
        if (attempt === 3) throw error;
        const running = await bar().innerText({ timeout: 100 }).catch(() => "");
        if (/\d\.\ds/.test(running)) return await wanted.first().waitFor();
      }
    }
  }

  /** A question of the editor, as a toast or, where the editor shows no toast, in the list of notifications. */
  async function question(text) {
    const shown = toast().filter({ hasText: text }).first();
    try {
      await shown.waitFor({ timeout: 5000 });
      return shown;
    } catch {
      await run("Notifications: Show Notifications");
      const listed = page.locator(".notifications-center .monaco-list-row").filter({ hasText: text }).first();
      await listed.waitFor();
      seen.listed = [...(seen.listed ?? []), text];
      return listed;
    }
  }

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

  /** Says that the folder is trusted, as a user does. */
  async function trust() {
    await run("Workspaces: Manage Workspace Trust");
    await page.locator(".workspace-trust-editor .monaco-button", { hasText: "Trust" }).first().click();
    await close();
  }

  /** Only the explorer and one file: what earlier steps opened is put away. */
  async function tidy() {
    await page.keyboard.press("Escape");
    const unsaved = await page.locator(".tab.dirty").count();
    if ((await page.locator(".tab").count()) > 0) {
      await page.keyboard.press("Control+K");
      await page.keyboard.press("Control+W");
      if (unsaved > 0) await page.locator(".monaco-dialog-box .monaco-button", { hasText: "Don't Save" }).first().click();
      const closed = () => document.querySelectorAll(".editor-instance, .tab").length === 0;
      await page.waitForFunction(closed, undefined, { timeout: 3000 }).catch(async () => {
        // What has the keys, such as a terminal, kept them.
        await run("View: Close All Editors");
        await page.waitForFunction(closed);
      });
    }
    if ((await toast().count()) > 0) await run("Notifications: Clear All Notifications");
    if (!(await page.locator(".explorer-folders-view").first().isVisible())) await run("View: Show Explorer");
  }

  async function until(what, holds) {
    for (let tries = 0; tries < 1800; tries += 1) {
      if (holds()) return;
      await new Promise((wake) => setTimeout(wake, 50));
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

  return { page, step, run, open, goto, ask, visit, file, texts, lens, press, question, picks, toast, bar, pick, hidePanel, problemsWith, allProblems, close, trust, tidy, until, picture, answered };
}
