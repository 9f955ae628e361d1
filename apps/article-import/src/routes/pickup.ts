// The hand-back, as a client sees it: what waits, its content, and the word on what it came to. The first word counts. What
// has been acked is not kept here any more: neither its text nor its address in the clear beyond the import itself.
import { type AppRoute, type BatchItem, NotFound, StateConflict } from "holdfast";
import type { Link } from "../import-one.ts";
import { KIND } from "../kind-name.ts";
import { canonicalise } from "../links/canonical.ts";
import { type Asked, bodyOf, type DeskOf, findImport, makeRoute, noImport, refuse } from "./routes.ts";

const PAGE = 100;
const MOST_IMPORTS = 50;
const MOST_AGAIN = 500;
const WORDS = ["saved", "consent-wall", "duplicate", "error"] as const;
type Word = (typeof WORDS)[number];

export function makePickupRoutes(deskOf: DeskOf): AppRoute[] {
  return [
    makeRoute(deskOf, {
      method: "GET",
      path: "/pickups",
      async answer({ hf, owner, request }) {
        const cursor = request.query.get("cursor");
        const { parcels, next } = await hf
          .inbox(owner)
          .list({ state: ["waiting", "fetched"], limit: PAGE, ...(cursor !== null && { cursor }) });
        const pickups = parcels.flatMap(({ id, name, meta, size, expiresAt }) => {
          const { batch, seq } = (meta ?? {}) as { batch?: unknown; seq?: unknown };
          // Others may put things into this inbox.
          return name === "article.json" && typeof batch === "string" ? [{ id, batch, seq, size, expiresAt }] : [];
        });
        return { pickups, next };
      },
    }),
    makeRoute(deskOf, {
      method: "GET",
      path: "/pickups/:parcel",
      role: "operator",
      async answer({ hf, owner, request }) {
        const { parcel = "" } = request.params;
        if (!/^[0-9a-f-]{36}$/i.test(parcel)) return noPickup();
        try {
          const content = await hf.inbox(owner).open(parcel);
          return new Response(await content.text(), {
            headers: { "content-type": "application/json", "cache-control": "no-store" },
          });
        } catch (error) {
          // Another device may have acked it while it was being read.
          if (error instanceof NotFound || (await hf.inbox(owner).get(parcel))?.ackedAt) return noPickup();
          throw error;
        }
      },
    }),
    makeRoute(deskOf, { method: "POST", path: "/imports/:id/items/:seq/ack", answer: ack }),
    makeRoute(deskOf, { method: "POST", path: "/returned", answer: fetchAgain }),
  ];
}

const noPickup = (): Response =>
  refuse(404, "PICKUP_GONE", "This article does not wait any more.", "Another device has it, or it is fetched again.");

/** `{ outcome, first, mine }`: what the item came to, whether by this word, whether by this device. */
async function ack(asked: Asked): Promise<unknown> {
  const { hf, owner, library, request } = asked;
  const batch = await findImport(asked);
  const seq = Number(request.params["seq"]);
  if (!batch || !Number.isSafeInteger(seq) || seq < 1) return noImport();
  const { outcome, device, url, error } = await bodyOf(asked);
  if (!WORDS.includes(outcome as Word)) {
    return refuse(
      422,
      "OUTCOME_INVALID",
      `outcome is ${JSON.stringify(outcome)?.slice(0, 50)}.`,
      `Give one of ${WORDS.join(", ")}.`,
    );
  }
  if (typeof device !== "string" || !/^[\w-]{1,64}$/.test(device)) {
    return refuse(422, "DEVICE_INVALID", "device is missing.", "Send the same id with every ack of a device.");
  }
  const item = await hf.batches.item(batch.id, seq);
  if (!item) return noImport();
  if (item.state !== "handed-over") return past(item, device);
  const isKept = outcome === "saved" || outcome === "consent-wall";
  const { url: askedFor, again = false } = item.payload as Link;
  const addresses = [askedFor, ...(typeof url === "string" ? [url] : [])]
    .map((each) => canonicalise(each))
    .flatMap((each) => ("url" in each ? [each.url] : []));
  const place = { batchId: batch.id, seq, ...(again && { since: batch.createdAt }) };
  const isFirst = !isKept || (await library.take(owner, addresses, place));
  try {
    const answer = await hf.batches.ack(batch.id, seq, {
      outcome: isFirst ? (outcome as Word) : "duplicate",
      result: { device },
      by: device,
      ...(outcome === "error" && typeof error === "string" && { error: error.slice(0, 500) }),
    });
    if (answer.first) return { ...answer, mine: true };
    return past((await hf.batches.item(batch.id, seq)) ?? item, device);
  } catch (refused) {
    // It went back between the look and the word.
    if (refused instanceof StateConflict) return past((await hf.batches.item(batch.id, seq)) ?? item, device);
    throw refused;
  }
}

/** A client is back: what nobody took in time, and was given up, is fetched once more for it. */
async function fetchAgain({ hf, owner, request }: Asked): Promise<{ again: number }> {
  const { batches } = await hf.batches.list({ kind: KIND, owner, withErrors: true, limit: MOST_IMPORTS });
  let again = 0;
  for (const { id, state } of batches) {
    if (state === "cancelled") continue;
    const { items } = await hf.batches.items(id, { state: "error", limit: MOST_AGAIN });
    const seqs = items.filter(({ error }) => error?.reason === "expired").map(({ seq }) => seq);
    if (seqs.length === 0) continue;
    again += (await hf.batches.retryFailed(id, { seqs, by: request.caller?.name ?? owner })).retried;
  }
  return { again };
}

function past({ state, result }: BatchItem, device: string): unknown {
  const { device: by } = (result ?? {}) as { device?: unknown };
  if (state === "pending" || state === "running" || state === "handed-over") {
    return refuse(409, "NOT_HANDED_OVER", "This link is being fetched again.", "It comes once more; ack it then.");
  }
  return { outcome: state, first: false, mine: by === device };
}
