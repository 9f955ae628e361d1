// hf.batches.apply: commands of a client that works offline, applied in its order, each once, through the same state machine as
// everything else. A command that makes no sense any more is refused and counts as applied, so that it holds up nobody; nothing of
// it stays.
import { patiently } from "../db/patiently.ts";
import { HoldfastError, KindUnknown, NotFound, OptionInvalid, StateConflict } from "../errors.ts";
import type { AnyBatchKind } from "../job/define-batch.ts";
import { type FieldMeta, mergeFields } from "../job/merge-fields.ts";
import { toStorableJson } from "../job/storable.ts";
import { checkInboxName } from "../shared/inbox-name.ts";
import { refuseUnknown } from "../shared/refuse-unknown.ts";
import type { Advanced } from "../store/batches/advance.ts";
import { lockClient, noteApplied, undoable } from "../store/batches/clients.ts";
import { lockFields, writeFields } from "../store/batches/set-fields.ts";
import type { Store } from "../store/sql.ts";
import type { Batches } from "./batches.ts";
import type { Applied, AppliedCommand, ApplyInput, BatchCommand } from "./commands.ts";
import { checkText } from "./create-options.ts";

export interface ApplyTools {
  store: Store;
  /** hf.batches inside a transaction; what is to be told is told after it. */
  inside(tx: Store): { batches: Batches; tell(): void; note(batchId: string, advanced: Advanced): void };
}

const MOST_COMMANDS = 1_000;
const PATIENCE = { tries: 10, pauseMs: (failed: number) => 20 + 50 * failed };
const MOST_FIELD_BYTES = 65_536;

export async function applyCommands({ store, inside }: ApplyTools, input: ApplyInput): Promise<Applied> {
  refuseUnknown("batches.apply()", input, ["owner", "client", "commands", "kinds"]);
  const owner = checkInboxName("batches.apply() owner", input.owner);
  const client = checkText("batches.apply() client", input.client);
  const { commands, kinds } = input;
  if (!Array.isArray(commands) || commands.length === 0 || commands.length > MOST_COMMANDS) {
    throw new OptionInvalid("batches.apply() got too many commands, or none.", `Send 1 to ${MOST_COMMANDS} at a time.`);
  }
  const results: AppliedCommand[] = [];
  let applied = 0;
  for (const command of commands) {
    const one = await patiently(`What client ${client} sends`, PATIENCE, async () => {
      let tell = (): void => undefined;
      const result = await store.transaction(async (tx) => {
        const before = await lockClient(tx, owner, client);
        checkPlace(command, before, client);
        if (command.n <= before) return { applied: before, result: { n: command.n, status: "known" as const } };
        const room = inside(tx);
        let answer: AppliedCommand;
        try {
          answer = await undoable(tx, () => run(tx, room, owner, client, kinds, command));
          tell = room.tell;
        } catch (error) {
          answer = refusal(command, error);
        }
        await noteApplied(tx, owner, client, command.n);
        return { applied: command.n, result: answer };
      });
      tell();
      return result;
    });
    applied = one.applied;
    results.push(one.result);
  }
  return { applied, results };
}

function checkPlace({ n }: BatchCommand, applied: number, client: string): void {
  if (!Number.isSafeInteger(n) || n < 1) {
    throw new OptionInvalid(`The number of a command is ${String(n)}.`, "Count the commands of a client from 1.");
  }
  if (n <= applied + 1) return;
  throw new StateConflict(
    `Command ${n} of ${client} came before command ${applied + 1}.`,
    "Send what is missing first: commands are applied in order.",
  );
}

async function run(
  tx: Store,
  { batches, note }: ReturnType<ApplyTools["inside"]>,
  owner: string,
  client: string,
  kinds: readonly AnyBatchKind[],
  command: BatchCommand,
): Promise<AppliedCommand> {
  if (command.type === "create") {
    const { kind: name, items, key, total, open, fields } = command;
    const kind = kinds.find((known) => known.kind === name);
    if (!kind) throw new KindUnknown(`There is no batch kind "${name}".`, "Check the name of the kind.");
    const { id } = await batches.create(kind, items, {
      owner,
      ...(key !== undefined && { key }),
      ...(total !== undefined && { total }),
      ...(open !== undefined && { open }),
      ...(fields !== undefined && { fields }),
    });
    return { n: command.n, status: "applied", batch: id };
  }
  const id = command.batch;
  const batch = await batches.get(id);
  if (!batch || batch.owner !== owner) throw new NotFound(`There is no batch ${id}.`, "Check the id.");
  const by = client;
  switch (command.type) {
    case "pause":
    case "resume":
    case "cancel":
    case "delete":
      await batches[command.type](id, { by });
      break;
    case "retry":
      await batches.retryFailed(id, { by });
      break;
    case "outcome": {
      const { seq, outcome, result, error } = command;
      await batches.ack(id, seq, {
        outcome,
        by,
        ...(result !== undefined && { result }),
        ...(error !== undefined && { error }),
      });
      break;
    }
    case "set":
      note(id, await setFields(tx, id, command.fields, command.meta, client));
      break;
    default:
      throw new OptionInvalid(
        `There is no command ${JSON.stringify((command as { type: unknown }).type)}.`,
        "Known commands: create, pause, resume, cancel, retry, delete, outcome, set.",
      );
  }
  return { n: command.n, status: "applied", batch: id };
}

/** What the database says is no answer, and ends the transaction; what we say ourselves is one. */
function refusal({ n }: BatchCommand, error: unknown): AppliedCommand {
  if (!(error instanceof HoldfastError) || error.cause !== undefined) throw error;
  const { code, message, hint } = error;
  return { n, status: "refused", error: { code, message, hint } };
}

/** Fields of the owner's own: of each the newest write stays, whoever sends it when. */
async function setFields(
  tx: Store,
  id: string,
  fields: Record<string, unknown>,
  meta: Record<string, FieldMeta> | undefined,
  by: string,
): Promise<Advanced> {
  if (fields === null || typeof fields !== "object" || Array.isArray(fields)) {
    throw new OptionInvalid("fields is not an object.", 'Give names and values: { title: "…" }.');
  }
  toStorableJson("fields", fields);
  const stored = await lockFields(tx, id);
  if (!stored) throw new NotFound(`There is no batch ${id}.`, "Check the id.");
  const merged = mergeFields(stored, { fields, ...(meta && { meta }), by, now: stored.now });
  if (Buffer.byteLength(JSON.stringify(merged.fields)) > MOST_FIELD_BYTES) {
    throw new OptionInvalid(
      `The fields of batch ${id} would be larger than ${MOST_FIELD_BYTES} bytes.`,
      "Keep less with it.",
    );
  }
  return await writeFields(tx, id, merged, by);
}
