// One address for one page: what people paste and what exports hold, brought to the form in which links are compared.
// Only what a web page can be is let through; whether it may be fetched is decided where it is fetched.

/** Why something is no link that can be imported. The page has the words for each. */
export type LinkFault = "not-a-link" | "not-http" | "credentials" | "no-host" | "too-long";

export type Canonical = { url: string } | { fault: LinkFault };

const MAX_LENGTH = 2_048;
/** What only says where a click came from. */
const TRACKING =
  /^(utm_\w+|fbclid|gclid|gclsrc|dclid|gbraid|wbraid|msclkid|yclid|twclid|igshid|igsh|mc_cid|mc_eid|_hsenc|_hsmi|vero_id|oly_anon_id|oly_enc_id|mkt_tok|ref_src|ref_url|wt_mc|spm|s_cid|icid|cmpid|xtor)$/i;
/** Letters (of any script, as punycode by then), digits and hyphens between dots, or an address in brackets. */
const HOST_FORM = /^([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\])$/;

export function canonicalise(text: string): Canonical {
  const given = text.trim();
  if (given.length > MAX_LENGTH) return { fault: "too-long" };
  if (!/^[a-z][a-z0-9+.-]*:/i.test(given)) return { fault: "not-a-link" };
  if (!/^https?:\/\//i.test(given)) return { fault: "not-http" };
  let url: URL;
  try {
    url = new URL(given);
  } catch {
    return { fault: "not-a-link" };
  }
  if (url.username !== "" || url.password !== "") return { fault: "credentials" };
  url.hostname = url.hostname.replace(/\.$/, "");
  if (!HOST_FORM.test(url.hostname)) return { fault: "no-host" };
  url.hash = "";
  const kept = [...url.searchParams].filter(([name]) => !TRACKING.test(name));
  // Rewriting the query changes how it is escaped: only where something has to go.
  if (kept.length !== [...url.searchParams].length) url.search = new URLSearchParams(kept).toString();
  else if (url.search === "") url.search = "";
  return url.href.length > MAX_LENGTH ? { fault: "too-long" } : { url: url.href };
}
