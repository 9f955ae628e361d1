// holdfast inbox: hand files to a recipient, look at its inbox, and be a recipient.
import type { Command } from "commander";
import type { InboxView, ParcelView } from "../../http/contracts/inbox.ts";
import { isForPrograms, note, noteNext, print, printData, table } from "../output.ts";
import { addInboxFetch } from "./inbox-fetch.ts";
import { addInboxPull } from "./inbox-pull.ts";
import { addInboxPut } from "./inbox-put.ts";
import { type ClientFlags, readInboxApi, withClientFlags } from "./options.ts";

interface ListFlags extends ClientFlags {
  state?: string;
  order?: string;
  limit?: string;
  cursor?: string;
}

export function addInbox(program: Command): void {
  const inbox = program.command("inbox").summary("hand files to a recipient; list, fetch, ack and pull them");
  addInboxPut(inbox);
  withClientFlags(
    inbox
      .command("list")
      .description("lists the parcels of a recipient, oldest first")
      .argument("<recipient>", "whose inbox")
      .option("--state <state>", "waiting, fetched, acked or expired; several with commas")
      .option("--order <order>", "oldest or newest first")
      .option("--limit <number>", "how many (default 50, at most 500)")
      .option("--cursor <cursor>", "the page after this one, as the page before said"),
  ).action(runList);
  addInboxFetch(inbox);
  withClientFlags(
    inbox
      .command("ack")
      .description("says that parcels have arrived safely")
      .argument("<recipient>", "whose inbox")
      .argument("<id...>", "one id or several"),
  ).action(runAck);
  addInboxPull(inbox);
  withClientFlags(
    inbox
      .command("stats", { isDefault: true })
      .description("shows how inboxes stand, and which are stuck")
      .argument("[recipient]", "only this one"),
  ).action(runStats);
}

const PARCEL_COLUMNS = ["ID", "STATE", "SIZE", "NAME", "CREATED", "EXPIRES", "WHY"];

const parcelRow = (parcel: ParcelView): string[] => [
  parcel.id,
  parcel.state,
  String(parcel.size),
  parcel.name,
  parcel.createdAt,
  parcel.expiresAt,
  parcel.reason ?? "",
];

async function runList(recipient: string, flags: ListFlags): Promise<void> {
  const { state, order, limit, cursor } = flags;
  const page = await (await readInboxApi(flags)).list(recipient, { state, order, limit, cursor });
  if (printData(flags, page, page.parcels)) return;
  if (page.parcels.length === 0) return note("There are no such parcels.");
  print(table(PARCEL_COLUMNS, page.parcels.map(parcelRow)));
  noteNext(page);
}

async function runAck(recipient: string, ids: string[], flags: ClientFlags): Promise<void> {
  const api = await readInboxApi(flags);
  const answers: object[] = [];
  for (const id of ids) {
    const answer = await api.ack(recipient, id);
    answers.push({ id, ...answer });
    if (!isForPrograms(flags))
      print(`${id} is acked${answer.again ? ", as before" : ""}${answer.gone ? "; its time was over" : ""}.`);
  }
  printData(flags, answers, answers);
}

const INBOX_COLUMNS = [
  "RECIPIENT",
  "WAITING",
  "FETCHED",
  "BYTES",
  "ACKED",
  "NEVER FETCHED",
  "NEVER ACKED",
  "LAST POLL",
  "STUCK",
];

const inboxRow = (inbox: InboxView): string[] => [
  inbox.recipient,
  String(inbox.waiting),
  String(inbox.fetched),
  String(inbox.bytes),
  String(inbox.acked),
  String(inbox.neverFetched),
  String(inbox.neverAcked),
  inbox.polledAt ?? "never",
  inbox.stuck?.message ?? "",
];

async function runStats(recipient: string | undefined, flags: ClientFlags): Promise<void> {
  const page = await (
    await readInboxApi(flags)
  ).stats({ recipient, limit: recipient === undefined ? "100" : undefined });
  if (printData(flags, page, page.inboxes)) return;
  if (page.inboxes.length === 0) return note("There are no inboxes yet.");
  print(table(INBOX_COLUMNS, page.inboxes.map(inboxRow)));
  if (page.next !== null) note("There are more; --json and GET /api/v1/inbox show them page by page.");
}
