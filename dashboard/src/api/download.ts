// Saves what a route answers as a file. With a link alone the browser would not send the token.
import { CallError, headers, urlOf } from "./call.ts";
import { ROUTES } from "./routes.ts";

type FileRoute = "exportCsv" | "exportLines";

/** Whole or not at all: an answer that breaks off is an error. */
export async function download(
  name: FileRoute,
  id: string,
  query: Record<string, string | undefined>,
): Promise<{ file: string }> {
  const path = ROUTES[name].split(" ")[1]!.replace(":id", encodeURIComponent(id));
  const away = new CallError(0, "UNREACHABLE", "The download broke off.", "Nothing was saved; try again.");
  const response = await fetch(urlOf(path, query), { headers: headers() }).catch(() => Promise.reject(away));
  if (!response.ok) throw new CallError(response.status, "UNKNOWN", `The server answered with ${response.status}.`, "");
  const whole = await response.blob().catch(() => Promise.reject(away));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(whole);
  link.download =
    /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? path.split("/").at(-1)!;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return { file: link.download };
}
