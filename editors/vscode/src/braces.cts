// In the place of `brace-expansion`, 6 KB that guard against patterns which nobody writes here: those of the server have a list of endings at most.
const LIST = /\{([^{}]*,[^{}]*)\}/;
const MOST = 1000;

/** The patterns that one with lists in braces stands for. Where they become too many, what is left of braces stays as it is. */
export function expand(pattern: string): string[] {
  let all = [pattern];
  while (all.length < MOST && all.some((one) => LIST.test(one))) {
    const next = all.flatMap((one) => LIST.exec(one)?.[1]?.split(",").map((choice) => one.replace(LIST, () => choice)) ?? [one]);
    all = [...new Set(next)];
  }
  return all.slice(0, MOST);
}
