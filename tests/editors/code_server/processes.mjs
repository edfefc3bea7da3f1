// What the machine shows of a session: its language servers and its logs.
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

/** The language servers for folders: processes with the session id of the one that was started, each in the first folder that it serves. */
export function servers(config, ...folders) {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const session = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3];
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
      return session === String(config.session) && words.includes("lsp") && folders.includes(readlinkSync(`/proc/${name}/cwd`));
    } catch {
      return false;
    }
  });
}

/** How often the client's logs of the windows on a folder say something. */
export function logged(config, folder, pattern) {
  const files = readdirSync(config.logs, { recursive: true }).filter((name) => /[\\/]Tamis\.log$/.test(name));
  const all = files.map((name) => readFileSync(`${config.logs}/${name}`, "utf8")).filter((text) => text.includes(folder));
  return all.reduce((sum, text) => sum + (text.match(pattern)?.length ?? 0), 0);
}
