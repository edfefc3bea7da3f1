// version:check: sorts semantic versions and says which of them satisfy a range such as ^1.2.0 or >=2 <3.
// It runs on bun because `Bun.semver` reads ranges exactly as package managers do.
// Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.

const MAX_VERSIONS = 1000;
// The grammar of semver.org, with an optional leading v as tags are written.
const VERSION =
  /^v?(?:0|[1-9]\d{0,14})\.(?:0|[1-9]\d{0,14})\.(?:0|[1-9]\d{0,14})(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?$/;
const PART = "(?:\\d{1,15}|[xX*])";
const PARTIAL = `v?${PART}(?:\\.${PART}){0,2}(?:-[0-9A-Za-z.-]{1,60})?(?:\\+[0-9A-Za-z.-]{1,60})?`;
const ALTERNATIVE = new RegExp(`^(?:${PARTIAL} - ${PARTIAL}|(?:[<>]=?|[=~^])? ?${PARTIAL}(?: (?:[<>]=?|[=~^])? ?${PARTIAL})*)$`);

class InputError extends Error {}

async function readRequest(): Promise<Record<string, unknown>> {
  let request: unknown;
  try {
    request = JSON.parse((await Bun.stdin.text()).replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new InputError(`standard input is not JSON: ${(error as Error).message}`);
  }
  if (request === null || typeof request !== "object" || Array.isArray(request)) {
    throw new InputError("the input must be one JSON object");
  }
  return request as Record<string, unknown>;
}

function readVersions(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_VERSIONS) {
    throw new InputError(`'versions' is required and must be a list of 1 to ${MAX_VERSIONS} versions`);
  }
  return value.map((entry, index) => {
    if (typeof entry !== "string" || entry.length > 100 || !VERSION.test(entry.trim())) {
      throw new InputError(`'versions': entry ${index + 1} (${JSON.stringify(entry)?.slice(0, 60)}) is no version like 1.2.3`);
    }
    return entry.trim().replace(/^v/, "");
  });
}

/** `Bun.semver` reads nonsense as "any version", so that a mistyped range would seem to be satisfied. */
function isRange(range: string): boolean {
  return range.split("||").every((part) => ALTERNATIVE.test(part.trim().replace(/\s+/g, " ")));
}

function check(request: Record<string, unknown>): Record<string, unknown> {
  const versions = readVersions(request.versions);
  const { range = "*", include_prereleases: prereleases = false } = request;
  if (typeof range !== "string" || range.length > 200 || !isRange(range)) {
    throw new InputError("'range' must be a range such as ^1.2.0, ~1.4, >=2.0.0 <3.0.0 or 1.x || 2.x");
  }
  if (typeof prereleases !== "boolean") throw new InputError("'include_prereleases' must be true or false");

  const sorted = [...new Set(versions)].sort(Bun.semver.order);
  // A range takes prereleases only of the release that it names; with the option, 2.1.0-rc.1 counts like 2.1.0.
  const satisfies = (version: string) =>
    Bun.semver.satisfies(version, range) ||
    (prereleases && Bun.semver.satisfies(version.replace(/[-+].*$/, ""), range));
  const matching = sorted.filter(satisfies);
  return { sorted, matching, best: matching.at(-1) ?? null, latest: sorted.at(-1) ?? null };
}

try {
  const result = check(await readRequest());
  process.stdout.write(`${JSON.stringify(result)}\n`);
} catch (error) {
  process.stderr.write(`${(error as Error).message.replace(/\s+/g, " ")}\n`);
  process.exitCode = 1;
}
