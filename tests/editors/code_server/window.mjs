// One window of VS Code in the browser, and what a user does in any: open, go to, choose, wait for what is shown.

/** What can be done in a window; what its steps find is put into `seen`. */
export function windowOf(page, config, seen) {
  const texts = (selector) => page.locator(selector).allInnerTexts();

  // How long anything may take now, in ms: less for what has a second try.
  let most = Infinity;
  const patience = () => Math.min(config.patience, most);

  async function within(ms, work) {
    const before = most;
    most = Math.min(before, ms);
    page.setDefaultTimeout(patience());
    try {
      return await work();
    } finally {
      most = before;
      page.setDefaultTimeout(patience());
    }
  }

  /** Does a step. On a loaded machine one may fail because a click was lost: it is done once more after what is open was put away, as a user does.
   * `seen.again` names those steps, `seen.failure` the ones that failed twice. */
  async function step(name, work) {
    if (config.without.includes(name) || (config.only && !config.only.includes(name))) return;
    const started = Date.now();
    const late = config.patience < 10000;
    for (const [tries, ms] of late ? [[2, Infinity]] : [[1, 120000], [2, Infinity]]) {
      try {
        seen[name] = (await within(ms, work)) ?? true;
        break;
      } catch (error) {
        const failed = { step: name, error: String(error).slice(0, 2000), open: await openNow().catch(String) };
        await page.screenshot({ path: `${config.shots}/failed-${name}-${tries}.png` }).catch(() => {});
        const kind = tries === 1 ? "again" : "failure";
        seen[kind] = [...(seen[kind] ?? []), failed];
        seen[name] = null;
        await putAway();
      }
    }
    if (config.steps) await page.screenshot({ path: `${config.shots}/step-${name}.png` }).catch(() => {});
    seen.steps.push([name, Date.now() - started]);
  }

  /** What is open would be in the way of what follows. */
  async function putAway() {
    await within(10000, async () => {
      for (let times = 0; times < 3; times += 1) await page.keyboard.press("Escape");
      const workbench = page.locator(".monaco-workbench").first();
      if (await workbench.isVisible()) await tidy();
    }).catch(() => page.reload()).catch(() => {});
  }

  /** Leaves the page before it is closed: a page that only vanishes is waited for, with its language server. */
  async function leave() {
    await page.goto("about:blank").catch(() => {});
    await page.context().close();
  }

  /** What a person would see at a glance, for the words of a step that failed. */
  async function openNow() {
    const parts = {
      tabs: ".tab", active: ".tab.active", toasts: ".notification-toast", dialog: ".monaco-dialog-box",
      asks: ".quick-input-widget:visible", status: ".statusbar-item[id*='tamis']", lenses: ".codelens-decoration a",
    };
    const found = {};
    for (const [part, selector] of Object.entries(parts)) found[part] = (await texts(selector)).map((text) => text.slice(0, 200));
    return found;
  }

  /** Does what brings something until it is there. On a loaded machine a try is lost (what is pressed is drawn anew between press and release), or only
   * late: what came meanwhile is taken, and nothing is tried again while `taken` says that the try was heard. */
  async function bring(wanted, attempt, { taken = async () => false, ms = 15000 } = {}) {
    const until = Date.now() + patience();
    for (let wait = 5000, first = true; ; wait = Math.min(wait * 1.5, 15000), first = false) {
      let lost;
      if (first || !((await wanted.first().isVisible()) || (await taken()))) {
        await within(ms, () => attempt(first)).catch((error) => { lost = error; });
      }
      try {
        return await wanted.first().waitFor({ timeout: wait });
      } catch (error) {
        if (Date.now() > until) throw lost ?? error;
      }
    }
  }

  async function run(title) {
    const found = page.locator(".quick-input-list .monaco-list-row", { hasText: title });
    // Right after a window has opened, its commands may not be there yet: a user opens the list again.
    await bring(found, async (first) => {
      if (!first) await page.keyboard.press("Escape");
      await page.keyboard.press("F1");
      await page.locator(".quick-input-widget:visible .quick-input-filter input").fill(`>${title}`, { timeout: 5000 });
    });
    await page.keyboard.press("Enter");
  }

  const file = (name) => page.locator(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`).first();

  /** Goes to a folder or workspace and waits for a row of its files. On a loaded machine a workspace may come up empty: a user reloads. */
  async function visit(kind, place, name) {
    const address = `${config.url}/?${kind}=${encodeURIComponent(place)}`;
    await bring(file(name), async () => {
      await page.goto(address);
      await page.locator(".monaco-workbench .explorer-folders-view, .monaco-workbench .explorer-viewlet .welcome-view").first().waitFor();
    }, { ms: 30000 });
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
    await row(name).waitFor();
    await bring(page.locator(`.tab.active[data-resource-name="${name}"]`), async (first) => {
      if (first) return row(name).dblclick({ timeout: 8000 });
      const box = await row(name).boundingBox();
      if (box !== null) await page.mouse.dblclick(box.x + box.width / 2, box.y + box.height / 2);
    });
    await page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
  }

  async function goto(line, column) {
    await page.keyboard.press("Control+G");
    await page.locator(".quick-input-widget input").fill(`:${line}:${column}`);
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  // On a loaded machine what a key opens may come before what it is to show, and then never has it: a user presses again.
  const ask = (keys, wanted, at) =>
    bring(wanted, async (first) => {
      if (!first) await page.keyboard.press("Escape");
      if (at !== undefined) await goto(at[0], at[1]);
      for (const key of keys) await page.keyboard.press(key);
    });

  const lens = (text) => page.locator(".codelens-decoration a", { hasText: text }).first();
  const bar = () => page.locator('.statusbar-item[id*="tamis.run"]').first();
  /** The clock of a call that runs. */
  const running = () => page.locator('.statusbar-item[id*="tamis.run"]', { has: page.locator(".codicon-modifier-spin") }).first();
  const barText = async () => ((await bar().isVisible()) ? bar().innerText({ timeout: 1000 }).catch(() => "") : "");

  /** Keeps what the status of runs shows from now on: how long a run took is hidden after ten seconds. */
  const watchBar = () =>
    page.evaluate(() => {
      const told = (window.tamisBar = []);
      const look = () => {
        const text = document.querySelector('.statusbar-item[id*="tamis.run"]')?.textContent.replaceAll("\u00a0", " ");
        if (text && told.at(-1) !== text) told.push(text);
      };
      new MutationObserver(look).observe(document.querySelector(".part.statusbar"), { subtree: true, childList: true, characterData: true });
    });
  /** The first of its texts since then that fits. */
  async function barTold(pattern) {
    const found = await page.waitForFunction((text) => window.tamisBar.find((one) => new RegExp(text).test(one)), pattern);
    return found.jsonValue();
  }

  /** Presses a lens until what it brings is there; a call that has begun is not begun again. */
  async function press(text, wanted) {
    const before = await barText();
    const begun = async () => {
      const now = await barText();
      return now !== "" && now !== before;
    };
    await bring(wanted, () => lens(text).click({ timeout: 10000 }), { taken: begun });
  }

  /** What the status of the language tells, once it has a text: what is shown at the mouse stays as it was when the mouse came. */
  async function status(text) {
    await bring(page.locator(".hover-language-status .element", { hasText: text }), async () => {
      await page.mouse.move(640, 300);
      await page.locator(".hover-language-status").first().waitFor({ state: "hidden" });
      await page.locator('.statusbar-item[id="status.languageStatus"]').first().hover({ timeout: 5000 });
    });
    return texts(".hover-language-status .element");
  }

  /** Runs the call of the text that is open, which asks or takes its time. */
  const begin = (title = "▶ Run") => press(title, running());

  /** A question of the editor, as a toast or, where the editor shows no toast, in the list of notifications. */
  async function question(text) {
    const shown = toast().filter({ hasText: text }).first();
    try {
      await shown.waitFor({ timeout: 10000 });
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

  // The filter is taken after a moment, and not while the panel is hidden; what is left over is told beside it.
  const filter = () => page.locator('.part.panel input[placeholder^="Filter"], .part.panel .viewpane-filter input').first();
  const leftOver = () => page.locator(".part.panel .viewpane-filter-badge").first();

  /** The rows of the problems that hold a text, once there are so many (files are rows too). */
  async function problemsWith(text, least = 1) {
    if (!(await page.locator(".markers-panel").first().isVisible())) await page.keyboard.press("Control+Shift+M");
    await filter().fill(text);
    const rows = page.locator(".markers-panel .monaco-list-row");
    await page.locator(".markers-panel .monaco-list-row", { hasText: text }).first().waitFor();
    await leftOver().filter({ hasText: /\d/ }).waitFor();
    await rows.nth(least - 1).waitFor();
    return await texts(".markers-panel .monaco-list-row");
  }

  async function allProblems() {
    await filter().fill("");
    await page.locator(".markers-panel .monaco-list-row", { hasText: "closed.tool.json" }).first().waitFor();
    await leftOver().waitFor({ state: "hidden" });
    await hidePanel();
  }

  async function close() {
    await page.locator(".tab.active .codicon-close").first().click();
  }

  /** Says that the folder is trusted, as a user does. */
  async function trust() {
    await run("Workspaces: Manage Workspace Trust");
    const editor = page.locator(".workspace-trust-editor");
    await bring(editor.filter({ hasText: /You trust this/ }), () => editor.locator(".monaco-button", { hasText: /^Trust/ }).first().click({ timeout: 10000 }));
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
      await page.waitForFunction(closed, undefined, { timeout: 5000 }).catch(async () => {
        // What has the keys, such as a terminal, kept them.
        await run("View: Close All Editors");
        await page.waitForFunction(closed);
      });
    }
    if ((await toast().count()) > 0) await run("Notifications: Clear All Notifications");
    if (!(await page.locator(".explorer-folders-view").first().isVisible())) await run("View: Show Explorer");
  }

  async function until(what, holds) {
    for (const end = Date.now() + patience(); Date.now() < end; ) {
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

  return { page, step, leave, run, open, goto, ask, visit, file, texts, lens, press, begin, bring, status, question, picks, toast, bar, watchBar, barTold, running, pick, hidePanel, problemsWith, allProblems, close, trust, tidy, until, picture, answered };
}
