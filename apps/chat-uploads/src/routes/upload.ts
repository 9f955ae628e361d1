// POST /workspaces/:id/chat/uploads: files in. Each is streamed into a draft that nobody can see; when all are whole, they,
// their notices and (for a callback) the jobs that post them become visible in one commit. Only then is anybody told.
//
// A request that is refused is read to its end: a browser that is still sending would see a broken connection instead
// of the reason.
import { type AppRequest, type AppRoute, type Draft, type Duration, durationMs, OptionInvalid } from "holdfast";
import { forWorkspace } from "../access.ts";
import type { Desk, DeskOf } from "../desk.ts";
import { limitsOf } from "../limits.ts";
import { addNotices, type FileFacts, uriOf } from "../notices.ts";
import { answering, Refused, workspaceIdOf } from "../refused.ts";
import { findWorkspace, type Workspace } from "../workspaces.ts";

/** What a form has besides its files, and how much of it a part is taken for that has nothing in it. */
const FORM_BYTES = 1_048_576;
const PART_BYTES = 100;

export function makeUploadRoute(deskOf: DeskOf): AppRoute {
  return {
    method: "POST",
    path: "/workspaces/:id/chat/uploads",
    auth: forWorkspace,
    // The limits of files are checked while they come in.
    maxBody: Number.MAX_SAFE_INTEGER,
    handle: answering((request) => upload(deskOf(request.hf), request)),
  };
}

async function upload(desk: Desk, request: AppRequest): Promise<unknown> {
  const { hf } = desk;
  const workspace = await findWorkspace(hf, workspaceIdOf(request));
  if (workspace.mode === "push" && workspace.callbackUrl === null) {
    throw new Refused(422, "CHAT_NO_CALLBACK", "The workspace has no callback URL.", "Set one, or let it poll.");
  }
  const inbox = hf.inbox(workspace.id);
  const drafts: Draft[] = [];
  try {
    await draftAll(request, workspace, drafts);
    const files = drafts.map((draft) => toFacts(workspace.id, draft));
    await commit(desk, workspace, drafts, files);
    hf.wake();
    desk.announcements.announce({ workspaceId: workspace.id, what: "files", ids: files.map((file) => file.file_id) });
    return { files: files.map(({ uri, name, mimeType, size }) => ({ uri, name, mimeType, size })) };
  } catch (error) {
    await inbox.discard(drafts);
    throw error;
  }
}

async function draftAll({ hf, request, query, form }: AppRequest, { id }: Workspace, drafts: Draft[]): Promise<void> {
  const limits = limitsOf(hf);
  const { per_file_bytes: perFile, per_request_bytes: perRequest, max_attachments_per_message: most } = limits;
  const announced = Number(request.headers.get("content-length") ?? Number.NaN);
  if (announced > perRequest + FORM_BYTES) throw tooLarge("The request", null, announced, perRequest);
  const ttl = readTtl(query.get("ttl"), hf.inboxes.limits.ttlMs);
  let refused: Refused | undefined;
  let total = 0;
  let besides = 0;
  for await (const { field, filename, type, content } of form()) {
    const isFile = field === "files" && filename !== undefined;
    besides += PART_BYTES;
    if (!isFile) for await (const piece of content) if ((besides += piece.byteLength) > FORM_BYTES) break;
    if (besides > FORM_BYTES) throw refused ?? tooLarge("The form without its files", null, besides, FORM_BYTES);
    if (!isFile) continue;
    if (drafts.length >= most) {
      refused ??= new Refused(400, "CHAT_TOO_MANY_FILES", `A message takes ${most} files.`, "Send them in several.");
    }
    const seen = { bytes: 0 };
    const refusal = (size: number): Refused => tooLarge(nameOf(filename), filename, size, perFile);
    const counted = countedUpTo({ most: perFile, room: perRequest - total, content, seen, refusal });
    if (refused) {
      // Only read.
      for await (const piece of content) if ((total += piece.byteLength) > perRequest) throw refused;
      continue;
    }
    try {
      drafts.push(await hf.inbox(id).draft(counted, { name: filename === "" ? "file" : filename, type, ...ttl }));
    } catch (error) {
      if (error instanceof Refused) refused = error;
      else if (error instanceof OptionInvalid && seen.bytes === 0) refused = empty(filename);
      else throw error;
    }
    total += seen.bytes;
    if (total > perRequest) throw tooLarge("The request", null, total, perRequest);
  }
  if (refused) throw refused;
  if (drafts.length > 0) return;
  throw new Refused(400, "CHAT_NO_FILES", 'The form has no files in a field "files".', "Send at least one.");
}

interface Counted {
  /** For this file. */
  most: number;
  /** For what the request may still have: what has no end is not read to its end. */
  room: number;
  content: AsyncIterable<Uint8Array>;
  seen: { bytes: number };
  refusal: (size: number) => Refused;
}

/** Hands on no more than `most` bytes, reads to the end if there is room, and says how many there were. */
async function* countedUpTo({ most, room, content, seen, refusal }: Counted): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    seen.bytes += piece.byteLength;
    if (seen.bytes > room) throw refusal(seen.bytes);
    if (seen.bytes <= most) yield piece;
  }
  if (seen.bytes > most) throw refusal(seen.bytes);
}

async function commit(desk: Desk, { id, mode }: Workspace, drafts: Draft[], files: FileFacts[]): Promise<void> {
  const { hf, push } = desk;
  await hf.sql.transaction(async (tx) => {
    const notices = files.map((body) => ({ method: "chat_upload_receive" as const, body }));
    const numbers = await addNotices(tx, id, notices);
    await hf.inbox(id).putMany(drafts, { tx });
    const jobs =
      mode === "push"
        ? await hf.enqueueMany(
            push,
            numbers.map((seq) => ({ payload: { workspaceId: id, seq }, key: `${id}:${seq}`, group: id })),
            { tx },
          )
        : [];
    const rows = files.map((file, index) => ({ ...file, push_job_id: jobs[index]?.id ?? null }));
    await tx.query(
      `insert into :schema.chat_uploads_files (id, workspace_id, name, type, size, sha256, push_job_id, created_at)
       select f.file_id, $1::uuid, f.name, f."mimeType", f.size, f.sha256, f.push_job_id, :schema.clock()
       from jsonb_to_recordset($2::jsonb)
         as f(file_id uuid, name text, "mimeType" text, size bigint, sha256 text, push_job_id uuid)`,
      [id, JSON.stringify(rows)],
    );
  });
}

function toFacts(workspaceId: string, { id, name, size, sha256, parcel }: Draft): FileFacts {
  return { file_id: id, name, mimeType: parcel.type, size, uri: uriOf(workspaceId, id), sha256 };
}

/** Shorter than usual is fine; longer is not the sender's to say. */
function readTtl(given: string | null, mostMs: number): { ttl?: Duration } {
  if (given === null) return {};
  const refuse = (): Refused =>
    new Refused(400, "CHAT_TTL", `ttl is ${JSON.stringify(given.slice(0, 40))}.`, `Give up to ${mostMs / 1_000}s.`);
  try {
    const ms = durationMs("ttl", given);
    if (ms < 1_000 || ms > mostMs) throw refuse();
    return { ttl: given as Duration };
  } catch (error) {
    throw error instanceof OptionInvalid ? refuse() : error;
  }
}

const nameOf = (filename: string): string => JSON.stringify(filename.slice(0, 100));

function tooLarge(what: string, filename: string | null, size: number, max: number): Refused {
  const message = `${what} has ${size} bytes; ${max} are taken.`;
  return new Refused(413, "CHAT_TOO_LARGE", message, "GET /uploads/limits says what is.", { filename, size, max });
}

const empty = (filename: string): Refused =>
  new Refused(400, "CHAT_FILE_EMPTY", `${nameOf(filename)} is empty.`, "Send files that have content.", { filename });
