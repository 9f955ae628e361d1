// The server, as this page calls it.
const STORE = "holdfast-token";
export const BASE = "/article-import";

export class Refused extends Error {
  constructor(status, { code, message } = {}) {
    super(message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = code ?? "";
  }
}

export const headers = () => {
  const token = sessionStorage.getItem(STORE);
  return token ? { authorization: `Bearer ${token}` } : {};
};

export function signIn(token) {
  sessionStorage.setItem(STORE, token.trim());
}

let onUnauthorized = () => {};
export const whenUnauthorized = (listener) => (onUnauthorized = listener);

export async function call(method, path, body) {
  const answer = await fetch(BASE + path, {
    method,
    headers: { ...headers(), ...(body ? { "content-type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401) onUnauthorized();
  if (!answer.ok) throw new Refused(answer.status, content.error);
  return content;
}
