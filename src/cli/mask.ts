// A database URL that may be shown: without its password, wherever in the URL that stands.
const MASK = "***";

export function maskUrl(url: string): string {
  if (!/^postgres(ql)?:\/\//.test(url)) return url;
  // Not every URL that pg understands is one for URL(); one that is not is not shown at all.
  if (!URL.canParse(url)) return `postgres://${MASK}`;
  const shown = new URL(url);
  if (shown.password !== "") shown.password = MASK;
  for (const name of Array.from(shown.searchParams.keys())) {
    if (/password|secret|token|key/i.test(name)) shown.searchParams.set(name, MASK);
  }
  return shown.href;
}
