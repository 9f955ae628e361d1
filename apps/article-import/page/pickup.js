// Takes the articles that wait: one tab of this browser at a time, by a Web Lock. Fetched, encrypted, stored, and only then
// acked. Whatever is interrupted is done again: an article that is stored is not stored twice, an ack that was lost is
// said again, and one that another device has is not kept here.
import { Refused } from "/apps/page.js";
import { call } from "./api.js";

const LOCK = "article-import pickup";
const LOOK_EVERY_MS = 15_000;

export function takeArticles({ owner, device, vault, onTaken, onTrouble }) {
  let ring = () => {};
  let isOver = false;
  const ending = new AbortController();

  async function settle(id, batch, seq, summary) {
    const answer = await ack(batch, seq, { outcome: summary.warning ?? "saved", url: summary.url });
    // It is fetched again, and comes once more; what is stored here is kept for then.
    if (answer === undefined) return;
    const isElsewhere = !answer.mine && ["saved", "consent-wall", "duplicate"].includes(answer.outcome);
    if (isElsewhere || answer.outcome === "duplicate") await vault.remove(id);
    else await vault.settle(id);
    onTaken({ id, ...answer });
  }

  async function ack(batch, seq, body) {
    try {
      return await call("POST", `/imports/${batch}/items/${seq}/ack`, { ...body, device });
    } catch (error) {
      if (error instanceof Refused && error.status === 409) return undefined;
      // The import was deleted: nobody asks any more, and the article is here.
      if (error instanceof Refused && error.status === 404) return { outcome: "saved", first: false, mine: true };
      throw error;
    }
  }

  async function takeOne({ id: parcel, batch, seq }) {
    const id = `${batch}:${seq}`;
    const known = await vault.summary(id);
    if (known) return await settle(id, batch, seq, known);
    let article;
    try {
      article = await call("GET", `/pickups/${parcel}`);
    } catch (error) {
      if (error instanceof Refused && error.status === 404) return;
      throw error;
    }
    if (typeof article?.url !== "string" || typeof article.html !== "string") {
      await ack(batch, seq, { outcome: "error", error: "The article could not be read by the client." });
      return;
    }
    if (await vault.hasUrl(article.url)) {
      const answer = await ack(batch, seq, { outcome: "duplicate", url: article.url });
      if (answer) onTaken({ id, ...answer });
      return;
    }
    await vault.save({ id, batch, seq }, article);
    await settle(id, batch, seq, article);
  }

  /** One that fails does not hold up the others: those that did are given, to be tried with the next look. */
  async function settleAll(stored, fail) {
    const left = [];
    for (const one of stored) {
      const { id, batch, seq } = one;
      try {
        const summary = isOver ? undefined : await vault.summary(id);
        if (summary) await settle(id, batch, seq, summary);
      } catch (error) {
        fail(error);
        left.push(one);
      }
    }
    return left;
  }

  /** Nor here. */
  async function look(fail) {
    for (let cursor = null; ;) {
      const { pickups, next } = await call("GET", `/pickups${cursor ? `?cursor=${cursor}` : ""}`);
      for (const pickup of pickups) {
        if (isOver) return;
        await takeOne(pickup).catch(fail);
      }
      if (next === null) break;
      cursor = next;
    }
  }

  async function work() {
    let stored = await vault.unsettled();
    while (!isOver) {
      const rung = new Promise((resolve) => (ring = resolve));
      let failed = null;
      const fail = (error) => (failed ??= error);
      stored = await settleAll(stored, fail);
      await look(fail).catch(fail);
      onTrouble(failed);
      await Promise.race([rung, new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))]);
    }
  }

  void (async () => {
    while (!isOver) {
      try {
        await navigator.locks.request(`${LOCK} ${owner}`, { signal: ending.signal }, work);
      } catch (error) {
        if (isOver) return;
        onTrouble(error);
        await new Promise((resolve) => setTimeout(resolve, 2_000));
      }
    }
  })();

  return {
    /** Something may wait. */
    ring: () => ring(),
    stop() {
      isOver = true;
      ending.abort();
      ring();
    },
  };
}
