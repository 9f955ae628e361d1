// How the app says no: with Holdfast's form of an error. Thrown where something is found out, turned into an answer by
// `answering`.
import type { AppRequest } from "holdfast";

export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
  /** Beside the error, in the body. */
  readonly more: Record<string, unknown>;
  constructor(status: number, code: string, message: string, hint: string, more: Record<string, unknown> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.more = more;
  }
}

export function answering(handle: (request: AppRequest) => Promise<unknown>) {
  return async (request: AppRequest): Promise<unknown> => {
    try {
      return await handle(request);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { status, code, message, hint, more } = error;
      return Response.json({ error: { code, message, hint }, ...more }, { status });
    }
  };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const isUuid = (text: unknown): text is string => typeof text === "string" && UUID.test(text);

export function workspaceIdOf({ params: { id } }: Pick<AppRequest, "params">): string {
  if (isUuid(id)) return id.toLowerCase();
  throw new Refused(400, "CHAT_WORKSPACE_ID", `${JSON.stringify(id)} is not the id of a workspace.`, "It is a UUID.");
}

export function fileIdOf({ params: { file_id: id } }: Pick<AppRequest, "params">): string {
  if (isUuid(id)) return id.toLowerCase();
  throw new Refused(400, "CHAT_FILE_ID", `${JSON.stringify(id)} is not the id of a file.`, "It is a UUID.");
}

/** The same whether it never was, is over, or is somebody else's. */
export const noSuchFile = (): Refused =>
  new Refused(404, "CHAT_FILE_UNKNOWN", "This workspace has no such file, or not any more.", "Files expire.");

export const noSuchWorkspace = (): Refused =>
  new Refused(404, "CHAT_WORKSPACE_UNKNOWN", "There is no such workspace.", "Add it: holdfast workspace add.");
