// /api/v1/batches: make, look, act. Each is one call of the client, about a batch that the caller may see.
import type { CreateBatchOptions } from "../../batches/create-options.ts";
import type { AckOptions, AddOptions, BatchListOptions, ItemListOptions } from "../../batches/batches.ts";
import type { Holdfast } from "../../client/client.ts";
import { NotFound, OptionInvalid } from "../../errors.ts";
import type { Batch } from "../../job/batch.ts";
import type { AnyJobKind } from "../../job/define-job.ts";
import type { Caller } from "../../shared/caller.ts";
import { toBatchView, toErrorGroupView, toItemView } from "../batch-view.ts";
import { batchContracts, type ItemView } from "../contracts/batches.ts";
import type { InputOf } from "../contract.ts";
import { createFromLines } from "../create-batch.ts";
import { type ExportFormat, sendExport } from "../export-items.ts";
import { given } from "../given.ts";
import { readItemPages } from "../item-pages.ts";
import { makeEyes } from "../eyes.ts";
import { makeKnownKinds } from "../known-kinds.ts";
import { readLines } from "../lines.ts";
import { forbidden, refuseOtherOwner } from "../own.ts";
import { mediaRoute, route, type RouteContext } from "./route.ts";

export function makeBatchRoutes(hf: Holdfast, kinds: readonly AnyJobKind[]) {
  const known = makeKnownKinds(kinds);
  const eyesOf = makeEyes(kinds);

  /** Asked only where it makes a difference. */
  const kindOf = async (id: string, caller: Caller): Promise<string | undefined> =>
    eyesOf(caller).asksForKind ? (await hf.batches.get(id))?.kind : undefined;

  /** Somebody else's is the same 404 as none. */
  async function seen(id: string, { owner }: Caller): Promise<Batch> {
    const batch = await hf.batches.get(id);
    if (batch && (owner === null || batch.owner === owner)) return batch;
    throw new NotFound(`There is no batch ${id}.`, "Finished batches go after their retention; check the id.");
  }

  /** For whoever may see all of them the client itself says that there is none. */
  async function checkOwner(id: string, caller: Caller): Promise<void> {
    if (caller.owner !== null) await seen(id, caller);
  }

  async function exported(
    format: ExportFormat,
    { params: { id }, query: { state } }: InputOf<typeof batchContracts.exportCsv>,
    { caller, request }: RouteContext,
  ): Promise<Response> {
    const { counts, kind } = await seen(id, caller);
    // Said before the download begins.
    if (state !== undefined && !(state in counts)) {
      throw new OptionInvalid(`state is ${JSON.stringify(state)}.`, `Give one of ${Object.keys(counts).join(", ")}.`);
    }
    const pages = readItemPages(hf, id, given<ItemListOptions>({ state }));
    return sendExport({ batchId: id, kind, pages, format, eyes: eyesOf(caller), method: request.method });
  }

  return {
    createBatch: route(batchContracts.createBatch, async ({ body, query }, { caller, request }) => {
      if (body !== null) refuseBoth(query);
      const { kind: name, items, ...rest } = body ?? { ...query, open: isTrue(query.open), items: undefined };
      if (name === undefined) throw new OptionInvalid("The query has no kind.", "Give it: ?kind=articles.import");
      const kind = known.batch(name);
      const options = readOptions(rest, caller);
      if (options.onDone) known.job(options.onDone.kind);
      const answer =
        body === null
          ? await createFromLines(hf, { kind, lines: readLines(request), options, by: caller.name })
          : await hf.batches.create(kind, items ?? [], options);
      return { status: answer.created ? 201 : 200, body: answer };
    }),
    listBatches: route(batchContracts.listBatches, async ({ query }, { caller }) => {
      const { cursor, withErrors, owner = caller.owner, ...filter } = query;
      refuseOtherOwner(owner, caller);
      const options = { ...filter, owner, withErrors: isTrue(withErrors), cursor: cursor?.toLowerCase() };
      const { batches, next } = await hf.batches.list(given<BatchListOptions>(options));
      return { body: { batches: batches.map((batch) => toBatchView(batch, eyesOf(caller))), next } };
    }),
    readBatch: route(batchContracts.readBatch, async ({ params: { id } }, { caller }) => ({
      body: toBatchView(await seen(id, caller), eyesOf(caller)),
    })),
    deleteBatch: route(batchContracts.deleteBatch, async ({ params: { id } }, { caller }) => {
      const found = await seen(id, caller).catch((error: unknown) => {
        if (error instanceof NotFound) return undefined;
        throw error;
      });
      if (found) await hf.batches.delete(id, { by: caller.name });
      return { body: { id, deleted: found !== undefined } };
    }),
    listItems: route(batchContracts.listItems, async ({ params: { id }, query }, { caller }) => {
      await checkOwner(id, caller);
      const { limit = 50, ...rest } = query;
      const [eyes, kind] = [eyesOf(caller), await kindOf(id, caller)];
      const page: { items: ItemView[]; next: string | null } = { items: [], next: null };
      let size = 0;
      for await (const { items, bytes, next } of readItemPages(hf, id, { limit, ...given<ItemListOptions>(rest) })) {
        page.items.push(...items.map((item) => toItemView(item, eyes, kind)));
        page.next = next;
        size += bytes;
        // Short, but `next` says that there is more.
        if (size > MOST_PAGE_BYTES) break;
      }
      return { body: page };
    }),
    readItem: route(batchContracts.readItem, async ({ params: { id, seq } }, { caller }) => {
      await checkOwner(id, caller);
      const item = await hf.batches.item(id, seq);
      if (!item) throw new NotFound(`Batch ${id} has no item ${seq}.`, "Items are counted from 1.");
      return { body: toItemView(item, eyesOf(caller), await kindOf(id, caller)) };
    }),
    addItems: route(batchContracts.addItems, async ({ params: { id }, query, body }, { caller, request }) => {
      if (body !== null) refuseBoth(query);
      const { kind } = await seen(id, caller);
      const { items, ...rest } = body ?? { ...query, close: isTrue(query.close), items: readLines(request) };
      const answer = await hf.batches.add(known.batch(kind), id, items, given<AddOptions>(rest));
      return { body: { id, ...answer } };
    }),
    ackItem: route(batchContracts.ackItem, async ({ params: { id, seq }, body }, { caller }) => {
      await checkOwner(id, caller);
      return { body: await hf.batches.ack(id, seq, { ...given<AckOptions>(body), by: caller.name }) };
    }),
    closeBatch: route(batchContracts.closeBatch, async ({ params: { id } }, { caller }) => {
      await checkOwner(id, caller);
      await hf.batches.close(id);
      return { body: toBatchView(await seen(id, caller), eyesOf(caller)) };
    }),
    listErrors: route(batchContracts.listErrors, async ({ params: { id } }, { caller }) => {
      await checkOwner(id, caller);
      return { body: { errors: (await hf.batches.errors(id)).map(toErrorGroupView) } };
    }),
    exportLines: mediaRoute(batchContracts.exportLines, (input, context) => exported("ndjson", input, context)),
    exportCsv: mediaRoute(batchContracts.exportCsv, (input, context) => exported("csv", input, context)),
    pauseBatch: route(batchContracts.pauseBatch, async ({ params: { id } }, { caller }) => {
      await checkOwner(id, caller);
      return { body: toBatchView(await hf.batches.pause(id, { by: caller.name }), eyesOf(caller)) };
    }),
    resumeBatch: route(batchContracts.resumeBatch, async ({ params: { id } }, { caller }) => {
      await checkOwner(id, caller);
      return { body: toBatchView(await hf.batches.resume(id, { by: caller.name }), eyesOf(caller)) };
    }),
    cancelBatch: route(batchContracts.cancelBatch, async ({ params: { id } }, { caller }) => {
      await checkOwner(id, caller);
      return { body: toBatchView(await hf.batches.cancel(id, { by: caller.name }), eyesOf(caller)) };
    }),
    retryFailed: route(batchContracts.retryFailed, async ({ params: { id }, query: { seqs } }, { caller }) => {
      await checkOwner(id, caller);
      const { retried, batch } = await hf.batches.retryFailed(id, { by: caller.name, ...(seqs && { seqs }) });
      return { body: { ...toBatchView(batch, eyesOf(caller)), retried } };
    }),
  };
}

const MOST_PAGE_BYTES = 8 * 1_048_576;

const isTrue = (text: string | undefined): boolean | undefined => (text === undefined ? undefined : text === "true");

/** What the server's own people decide, not those it does something for. */
const NOT_FOR_OWNERS = ["concurrency", "attempts", "priority", "onDone"] as const;

function readOptions(rest: object, caller: Caller): CreateBatchOptions {
  const options = given<CreateBatchOptions>(rest);
  if (caller.owner === null) return options;
  refuseOtherOwner(options.owner ?? caller.owner, caller);
  const refused = NOT_FOR_OWNERS.find((name) => options[name] !== undefined);
  if (refused !== undefined) {
    throw forbidden(`A token that is bound to an owner cannot choose ${refused}.`, "Leave it out.");
  }
  return { ...options, owner: caller.owner };
}

function refuseBoth(query: Record<string, unknown>): void {
  const name = Object.keys(query).find((key) => query[key] !== undefined);
  if (name === undefined) return;
  throw new OptionInvalid(`${name} stands in the query.`, "With JSON it stands in the body; the query is for lines.");
}
