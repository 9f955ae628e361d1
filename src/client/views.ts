// hf.views: what an app gives its end users, so that they can watch one job or one batch and nothing else. A view is signed,
// not stored: it names what it is about and until when, and whoever has it can look at how far that is. It shows no
// payload, no result, no kind and no error's text.
//
// A view is hv1_<what it says>_<signature>; the signature is compared in constant time. Dropping the row in `secrets` (a new
// one has to be put there) ends all of them.
import { createHmac, timingSafeEqual } from "node:crypto";
import type { Batches } from "../batches/batches.ts";
import { NotFound, OptionInvalid, StateConflict } from "../errors.ts";
import type { BatchState } from "../job/batch.ts";
import type { JobStatus } from "../job/states.ts";
import { checkId } from "../shared/check-id.ts";
import { durationMs, type Duration } from "../shared/duration.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import { databaseNow } from "../store/stats/database-clock.ts";
import { readViewKey } from "../store/views/key.ts";
import type { Store } from "../store/sql.ts";
import type { Jobs } from "./jobs.ts";

/** What a view is to be of, and for how long. */
export interface NewView {
  /** The id of a job, or of a batch: one of them. */
  job?: string | undefined;
  batch?: string | undefined;
  /** How long it counts: a day, if not given; at most 400 days. */
  expires?: Duration | undefined;
}

/** A view, to be given to an end user: whoever has it may look. */
export interface SignedView {
  view: string;
  expiresAt: Date;
}

/** How far it is, and nothing more. */
export interface View {
  what: "job" | "batch";
  status: JobStatus | BatchState;
  done: number | null;
  total: number | null;
  /** What a handler said about its progress. */
  note: string | null;
  attempt: number | null;
  maxAttempts: number | null;
  /** Items of a batch that failed, and that came to something else than hoped for. */
  errors: number | null;
  warnings: number | null;
  etaMs: number | null;
  /** When it is due: for what is scheduled, or tried again. */
  nextAt: Date | null;
  startedAt: Date | null;
  finishedAt: Date | null;
}

/** `hf.views`: what end users may be given, to watch one job or one batch. */
export interface Views {
  sign(view: NewView): Promise<SignedView>;
  /** Undefined: it is no view of this database, or its time is over, or what it is about is gone. */
  read(view: string): Promise<View | undefined>;
}

export interface ViewsInput {
  store: Store;
  jobs: Jobs;
  batches: Batches;
}

const PREFIX = "hv1";
const FORM = /^hv1_([\w-]{31})_([\w-]{43})$/;
const LONGEST_MS = 400 * 86_400_000;
const KEY_FOR_MS = 60_000;
const WHAT = ["job", "batch"] as const;

export function makeViews({ store, jobs, batches }: ViewsInput): Views {
  let known: { key: string; at: number } | undefined;
  async function key(): Promise<string> {
    if (known && performance.now() - known.at < KEY_FOR_MS) return known.key;
    const found = await readViewKey(store);
    if (found === null) {
      throw new StateConflict(
        "This database has no key to sign views with.",
        `Put one back: insert into ${store.schema}.secrets (name, value) values ('views', a long random text).`,
      );
    }
    known = { key: found, at: performance.now() };
    return found;
  }

  return {
    async sign(view) {
      refuseUnknown("views.sign()", view, ["job", "batch", "expires"]);
      const { job, batch, expires = "1d" } = view;
      if ((job === undefined) === (batch === undefined)) {
        throw new OptionInvalid("A view is of one job or of one batch.", "Give job or batch: one of them.");
      }
      const id = checkId(job ?? batch, job === undefined ? "The batch id" : "The job id");
      const forMs = durationMs("expires", expires);
      if (forMs < 1_000 || forMs > LONGEST_MS) {
        throw new OptionInvalid(`expires is "${expires}".`, "Give 1s to 400d.");
      }
      const there = job === undefined ? await batches.get(id) : await jobs.get(id);
      if (!there) throw new NotFound(`There is no ${job === undefined ? "batch" : "job"} ${id}.`, "Check the id.");
      const expiresAt = new Date(Math.ceil(((await databaseNow(store)).getTime() + forMs) / 1_000) * 1_000);
      const said = encode({ what: job === undefined ? "batch" : "job", id, expiresAt });
      return { view: `${PREFIX}_${said}_${signatureOf(said, await key()).toString("base64url")}`, expiresAt };
    },
    async read(given) {
      const [, said, signature] = FORM.exec(given) ?? [];
      if (said === undefined || signature === undefined) return undefined;
      const shown = Buffer.from(signature, "base64url");
      const expected = signatureOf(said, await key());
      if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) return undefined;
      const about = decode(said);
      if (!about || (await databaseNow(store)) >= about.expiresAt) return undefined;
      return about.what === "job" ? await viewOfJob(jobs, about.id) : await viewOfBatch(batches, about.id);
    },
  };
}

const signatureOf = (said: string, key: string): Buffer =>
  createHmac("sha256", key).update(`${PREFIX}_${said}`).digest();

interface About {
  what: View["what"];
  id: string;
  expiresAt: Date;
}

/** One byte for what, sixteen for the id, six for the second at which it ends. */
function encode({ what, id, expiresAt }: About): string {
  const bytes = Buffer.alloc(23);
  bytes.writeUInt8(WHAT.indexOf(what), 0);
  bytes.write(id.replaceAll("-", ""), 1, "hex");
  bytes.writeUIntBE(expiresAt.getTime() / 1_000, 17, 6);
  return bytes.toString("base64url");
}

function decode(said: string): About | undefined {
  const bytes = Buffer.from(said, "base64url");
  const what = WHAT[bytes.readUInt8(0)];
  if (what === undefined) return undefined;
  const id = bytes.toString("hex", 1, 17).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  return { what, id, expiresAt: new Date(bytes.readUIntBE(17, 6) * 1_000) };
}

async function viewOfJob(jobs: Jobs, id: string): Promise<View | undefined> {
  const job = await jobs.get(id);
  if (!job) return undefined;
  const { status, progress } = job;
  return {
    what: "job",
    status,
    done: progress?.done ?? null,
    total: progress?.total ?? null,
    note: progress?.note ?? null,
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    errors: null,
    warnings: null,
    etaMs: null,
    nextAt: status === "scheduled" || status === "retrying" ? job.runAt : null,
    startedAt: job.startedAt,
    finishedAt: job.finishedAt,
  };
}

async function viewOfBatch(batches: Batches, id: string): Promise<View | undefined> {
  const batch = await batches.get(id);
  if (!batch) return undefined;
  return {
    what: "batch",
    status: batch.state,
    done: batch.ended,
    total: batch.total,
    note: null,
    attempt: null,
    maxAttempts: null,
    errors: batch.counts["error"] ?? 0,
    warnings: batch.warnings,
    etaMs: batch.etaMs,
    nextAt: null,
    startedAt: batch.startedAt,
    finishedAt: batch.finishedAt,
  };
}
