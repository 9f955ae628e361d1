// The articles of this device: encrypted with a key that never leaves this browser (it cannot even be read by this page),
// kept in IndexedDB. What is stored in the clear is an id, a hash of the address, and times.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** An IndexedDB request as a promise. */
const done = (request) =>
  new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error));
  });

const committed = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.addEventListener("complete", () => resolve());
    transaction.addEventListener("abort", () => reject(transaction.error));
  });

export async function openVault(owner) {
  if (!globalThis.crypto?.subtle || !navigator.locks) throw new Error("insecure");
  const opening = indexedDB.open(`article-import ${owner}`, 1);
  opening.addEventListener("upgradeneeded", () => {
    opening.result.createObjectStore("keys");
    opening.result.createObjectStore("articles", { keyPath: "id" }).createIndex("url", "urlHash");
  });
  const db = await done(opening);
  // Another tab may have a newer page.
  db.addEventListener("versionchange", () => db.close());
  void navigator.storage?.persist?.();
  const key = await keyOf(db);

  const store = (mode) => db.transaction("articles", mode).objectStore("articles");
  const put = async (row) => {
    const transaction = db.transaction("articles", "readwrite", { durability: "strict" });
    transaction.objectStore("articles").put(row);
    await committed(transaction);
  };

  async function seal(value) {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const data = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, encoder.encode(JSON.stringify(value)));
    return { iv, data };
  }

  async function unseal({ iv, data }) {
    return JSON.parse(decoder.decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, data)));
  }

  return {
    has: async (id) => (await done(store("readonly").getKey(id))) !== undefined,
    hasUrl: async (url) =>
      (await done(
        store("readonly")
          .index("url")
          .getKey(await hashOf(url)),
      )) !== undefined,
    async save({ id, batch, seq }, { html, ...summary }) {
      const [sealedSummary, sealedBody] = await Promise.all([seal(summary), seal({ html })]);
      const urlHash = await hashOf(summary.url);
      await put({
        id,
        batch,
        seq,
        urlHash,
        summary: sealedSummary,
        body: sealedBody,
        savedAt: Date.now(),
        acked: false,
      });
    },
    /** The server knows that it is here. */
    async settle(id) {
      const row = await done(store("readonly").get(id));
      if (row) await put({ ...row, acked: true });
    },
    async replaceBody(id, html) {
      const row = await done(store("readonly").get(id));
      if (!row) return;
      const { warning: _, ...summary } = await unseal(row.summary);
      await put({ ...row, summary: await seal({ ...summary, warning: null }), body: await seal({ html }) });
    },
    async remove(id) {
      await done(store("readwrite").delete(id));
    },
    async unsettled() {
      const rows = await done(store("readonly").getAll());
      return rows.filter(({ acked }) => !acked).map(({ id, batch, seq }) => ({ id, batch, seq }));
    },
    /** Newest first, without their texts. */
    async list() {
      const rows = await done(store("readonly").getAll());
      const read = rows.map(async ({ id, batch, seq, savedAt, summary }) => ({
        id,
        batch,
        seq,
        savedAt,
        ...(await unseal(summary)),
      }));
      return (await Promise.all(read)).sort((a, b) => b.savedAt - a.savedAt);
    },
    async summary(id) {
      const row = await done(store("readonly").get(id));
      return row ? await unseal(row.summary) : undefined;
    },
    async read(id) {
      const row = await done(store("readonly").get(id));
      return row
        ? { id, savedAt: row.savedAt, ...(await unseal(row.summary)), ...(await unseal(row.body)) }
        : undefined;
    },
  };
}

/** Made once; of two tabs that make one at the same moment the first stays. */
async function keyOf(db) {
  const known = await done(db.transaction("keys").objectStore("keys").get("main"));
  if (known) return known;
  const made = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const transaction = db.transaction("keys", "readwrite", { durability: "strict" });
  const adding = transaction.objectStore("keys").add(made, "main");
  adding.addEventListener("error", (event) => event.preventDefault());
  await committed(transaction).catch(() => {});
  return await done(db.transaction("keys").objectStore("keys").get("main"));
}

async function hashOf(text) {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
