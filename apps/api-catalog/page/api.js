// Calls to the server, with the token of this browser.
const TOKEN = "holdfast-token";
let token = sessionStorage.getItem(TOKEN) ?? "";

export class Unauthorized extends Error {}

export function signIn(given) {
  token = given;
  sessionStorage.setItem(TOKEN, given);
}

export async function call(method, path, body) {
  const headers = { "content-type": body instanceof Blob ? "application/octet-stream" : "application/json" };
  if (token !== "") headers.authorization = `Bearer ${token}`;
  const answer = await fetch(`/api-catalogs${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: body instanceof Blob ? body : JSON.stringify(body) }),
  });
  if (answer.status === 401) throw new Unauthorized(token === "" ? "" : "The token was not accepted.");
  const content = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(`${content.error?.message ?? answer.statusText} ${content.error?.hint ?? ""}`.trim());
  return content;
}
