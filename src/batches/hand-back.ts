// Hands the result of an item back to the owner of its batch: the content is stored beforehand, where nobody sees it, and put
// into the owner's inbox in the commit that makes the item handed-over.
import { OptionInvalid } from "../errors.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import { Fatal } from "../job/outcome.ts";
import { readHandBack } from "../store/batches/hand-back.ts";
import type { Store } from "../store/sql.ts";
import type { HandBackDoor } from "./run-item.ts";

/** As much of an inbox as is needed here; the inbox itself is a room on the same level. */
export interface OwnersInbox<Draft> {
  draft(content: never, options: { name: string; type?: string; ttl: `${number}ms`; meta: never }): Promise<Draft>;
  put(draft: Draft, options: { tx: Transaction }): Promise<{ id: string }>;
}

export interface HandBackInput<Draft> {
  store: Store;
  inbox(owner: string): OwnersInbox<Draft>;
  /** After the commit. */
  onPut(): void;
}

export function makeHandBack<Draft>({ store, inbox, onPut }: HandBackInput<Draft>): HandBackDoor {
  return {
    async put(batchId, seq, content, file, inCommit) {
      if (content === undefined) {
        throw new OptionInvalid(
          `Item ${seq} of batch ${batchId} hands back nothing.`,
          "Give content: text, bytes, a value.",
        );
      }
      const batch = await readHandBack(store, batchId);
      if (!batch || batch.owner === null) {
        throw new Fatal(`Batch ${batchId} has no owner to hand anything back to. Create it with an owner.`);
      }
      const owners = inbox(batch.owner);
      const { name = `item-${seq}`, type } = file;
      const options = { name, ...(type !== undefined && { type }), ttl: `${batch.handMs}ms` as const };
      const draft = await owners.draft(content as never, { ...options, meta: { batch: batchId, seq } as never });
      await inCommit(async (tx) => (await owners.put(draft, { tx })).id);
      onPut();
    },
  };
}
