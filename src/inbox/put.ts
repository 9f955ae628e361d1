// Takes content in. It is written chunk by chunk under a draft that nobody can see, hashed on the way, and delivered when
// it is whole: all files of one put in one commit. A put that fails leaves nothing but a draft, which the janitor removes.
//
// With `tx` everything is written through the caller's transaction. A large file is better drafted before and delivered
// inside: put(draft, { tx }).
import { createHash } from "node:crypto";
import { fromTransaction } from "../db/caller-transaction.ts";
import { steadily } from "../db/steadily.ts";
import { ContentCorrupt, OptionInvalid, QuotaExceeded, StateConflict, TooLarge } from "../errors.ts";
import type { Transaction } from "../job/caller-transaction.ts";
import type { ResolvedInboxOptions } from "../options/inbox.ts";
import { within } from "../shared/sleep.ts";
import { uuidv7 } from "../shared/uuid.ts";
import { deliver, type DeliverResult, type NewParcel } from "../store/inbox/deliver.ts";
import { abandonDraft, beginDraft, writeChunk } from "../store/inbox/draft.ts";
import { readParcels } from "../store/inbox/read.ts";
import type { Parcel } from "../store/inbox/rows.ts";
import type { Store } from "../store/sql.ts";
import { chunksOf, readContent, type ReadableContent } from "./content.ts";
import { type FileFacts, type FileOptions, type PutFile, readFileOptions } from "./put-options.ts";
import { safeType } from "./safe-type.ts";

/** Measured from 64 KiB to 2 MiB on both tiers: smaller is slower, larger only holds more memory. docs/inbox.md. */
export const CHUNK_BYTES = 262_144;
const GIVE_UP_WITHIN_MS = 1_000;

/** Content that is stored and that nobody can see yet. */
export class Draft {
  readonly id: string;
  readonly recipient: string;
  readonly size: number;
  readonly sha256: string;
  readonly name: string;
  readonly parcel: NewParcel;
  constructor(recipient: string, parcel: NewParcel) {
    this.id = parcel.id;
    this.recipient = recipient;
    this.size = parcel.size;
    this.sha256 = parcel.sha256;
    this.name = parcel.name;
    this.parcel = parcel;
  }
}

/** The answer to a put: which parcel it is, and whether it is new. */
export interface PutParcel extends Parcel {
  /** False: the key was known, and this is the parcel it stands for. */
  created: boolean;
  /** Same key, other content: the first one stays. */
  conflict: boolean;
}

/** A list is checked before anything is stored; what comes one by one, as it comes. */
export type PutFiles = readonly (PutFile | Draft)[] | AsyncIterable<PutFile | Draft>;

export interface Putter {
  draft(content: unknown, options: FileOptions): Promise<Draft>;
  put(files: PutFiles, tx: Transaction | undefined): Promise<PutParcel[]>;
  discard(drafts: readonly Draft[]): Promise<void>;
}

export interface PutterInput {
  store: Store;
  limits: ResolvedInboxOptions;
  recipient: string;
  /** After the commit, for what was created; not with `tx`. */
  onPut(parcels: readonly PutParcel[]): void;
  onTrouble(error: unknown): void;
}

interface Prepared {
  facts: FileFacts;
  content: ReadableContent;
}

export function makePutter({ store, limits, recipient, onPut, onTrouble }: PutterInput): Putter {
  const quota = { quotaBytes: limits.quotaBytes, quotaParcels: limits.quotaParcels };

  /** Everything that can be seen to be wrong before anything is stored. */
  function prepare(where: string, given: unknown, options: FileOptions): Prepared {
    const facts = readFileOptions(where, options, limits);
    const read = readContent(given);
    const content = { ...read, size: read.size ?? facts.size };
    if (content.size === 0) throw empty(facts.name);
    if (content.size !== null && content.size > limits.maxFileBytes) throw tooLarge(facts.name, limits.maxFileBytes);
    return { facts, content };
  }

  async function write({ facts, content }: Prepared, target: Store, own: boolean): Promise<Draft> {
    const send = <T>(statement: () => Promise<T>): Promise<T> => (own ? steadily(statement) : statement());
    const id = uuidv7();
    const begun = await send(() =>
      beginDraft(target, { id, recipient, key: facts.key, size: content.size, ...quota }, own),
    );
    if (!begun.made && begun.known === null) throw full(recipient, begun, limits);
    const hash = createHash("sha256");
    let written = 0;
    let chunks = 0;
    try {
      for await (const bytes of chunksOf(content, CHUNK_BYTES)) {
        written += bytes.length;
        if (written > limits.maxFileBytes) throw tooLarge(facts.name, limits.maxFileBytes);
        hash.update(bytes);
        const n = chunks++;
        // The key is known: all that is left to say is whether this is the same content.
        if (!begun.made) continue;
        const isThere = await send(() => writeChunk(target, { draftId: id, n, bytes, written }, own));
        if (!isThere) throw brokenOff([facts.name]);
      }
      if (written === 0) throw empty(facts.name);
      if (content.size !== null && written !== content.size) throw cutShort(facts.name, content.size, written);
      const sha256 = hash.digest("hex");
      if (facts.sha256 !== null && facts.sha256 !== sha256) throw corrupt(facts.name, facts.sha256, sha256);
      const type = facts.type ?? safeType(content.type);
      return new Draft(recipient, { ...facts, id, type, size: written, sha256, chunks, chunkBytes: CHUNK_BYTES });
    } catch (error) {
      if (begun.made && own) await giveUp([id]);
      throw error;
    }
  }

  /** Best effort, and not for long: a draft that stays is removed when it has been silent long enough. */
  async function giveUp(ids: readonly string[]): Promise<void> {
    const gone = Promise.all(ids.map((id) => abandonDraft(store, id).catch(onTrouble)));
    await within(
      GIVE_UP_WITHIN_MS,
      gone.then(() => {}),
    );
  }

  function check(file: PutFile | Draft, index: number): Prepared | Draft {
    if (index >= limits.maxFilesPerPut) {
      throw new OptionInvalid(
        `The put has more than ${limits.maxFilesPerPut} files.`,
        "Put them in several calls, or raise the option inbox.maxFilesPerPut.",
      );
    }
    return file instanceof Draft ? ofThisInbox(file, recipient) : prepare("put()", file.content, file);
  }

  const checkAll = (files: readonly (PutFile | Draft)[]): (Prepared | Draft)[] => files.map(check);

  async function* checkEach(files: PutFiles): AsyncGenerator<Prepared | Draft> {
    let index = 0;
    for await (const file of files) yield check(file, index++);
  }

  return {
    async draft(content, options) {
      return await write(prepare("draft()", content, options), store, true);
    },
    async discard(drafts) {
      await giveUp(drafts.map((draft) => ofThisInbox(draft, recipient).id));
    },
    async put(files, tx) {
      const prepared = Array.isArray(files) ? checkAll(files) : checkEach(files);
      const own = tx === undefined;
      const target = own ? store : store.on(fromTransaction(tx));
      const drafts: Draft[] = [];
      const made: string[] = [];
      let result: DeliverResult;
      try {
        for await (const file of prepared) {
          const draft = file instanceof Draft ? file : await write(file, target, own);
          drafts.push(draft);
          if (!(file instanceof Draft)) made.push(draft.id);
        }
        if (drafts.length === 0) return [];
        const delivery = { recipient, ...quota, parcels: drafts.map((draft) => draft.parcel) };
        const run = (): Promise<DeliverResult> => deliver(target, delivery, own);
        result = await (own ? steadily(run) : run());
        if ("lost" in result) throw brokenOff(result.lost);
        if ("full" in result) throw full(recipient, result.full, limits);
      } catch (error) {
        if (own) await giveUp(made);
        throw error;
      }
      const { delivered } = result;
      const rows = await readParcels(
        target,
        delivered.map(({ id }) => id),
      );
      const parcels = delivered.map((one) => ({ ...rows.get(one.id)!, created: one.created, conflict: one.conflict }));
      if (own) onPut(parcels);
      return parcels;
    },
  };
}

function ofThisInbox(draft: Draft, recipient: string): Draft {
  if (draft.recipient === recipient) return draft;
  throw new OptionInvalid(
    `The draft ${draft.id} was made for ${draft.recipient}, not for ${recipient}.`,
    "Put it into the inbox that it was made in.",
  );
}

const empty = (name: string): OptionInvalid =>
  new OptionInvalid(`${name} is empty.`, "A parcel has at least one byte; send a text that says that there is none.");

function tooLarge(name: string, most: number): TooLarge {
  return new TooLarge(
    `${name} is larger than ${most} bytes, the most that a file may have.`,
    "Put it in parts, or raise the option inbox.maxFileBytes.",
  );
}

function cutShort(name: string, announced: number, written: number): ContentCorrupt {
  return new ContentCorrupt(
    `${name} has ${written} bytes; ${announced} were announced. Nothing was stored.`,
    "Put it again, or leave the size out.",
  );
}

function corrupt(name: string, expected: string, found: string): ContentCorrupt {
  return new ContentCorrupt(
    `${name} arrived with the SHA-256 ${found}; ${expected} was announced. Nothing was stored.`,
    "Put it again.",
  );
}

function brokenOff(names: readonly string[]): StateConflict {
  return new StateConflict(
    `What was drafted of ${names.join(", ")} is gone or not whole: the put was silent too long, or used twice.`,
    "Put it again; a slow sender needs a longer inbox.draftTimeout.",
  );
}

function full(
  recipient: string,
  { parcels, bytes }: { parcels: number; bytes: number },
  { quotaBytes, quotaParcels }: ResolvedInboxOptions,
): QuotaExceeded {
  return new QuotaExceeded(
    `The inbox of ${recipient} has no room: ${parcels} of ${quotaParcels} parcels, ${bytes} of ${quotaBytes} bytes.`,
    "Wait until the recipient acks or its parcels expire, or raise inbox.quotaBytes and inbox.quotaParcels.",
  );
}
