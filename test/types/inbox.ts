// What the inbox takes and gives, as the compiler sees it.
import { Readable } from "node:stream";
import type { Holdfast, Parcel } from "#src/index.js";
import { expectType, type Same } from "./expect-type.ts";

declare const hf: Holdfast;
const inbox = hf.inbox("ws-17");

const parcel = await inbox.put(Readable.from([Buffer.from("x")]), { name: "a", ttl: "10m", meta: { chat: 5 } });
expectType<Same<typeof parcel.sha256, string>>();
expectType<Same<typeof parcel.created, boolean>>();
await inbox.put({ any: ["json", 1, null] });
await inbox.put(new Uint8Array(3), { onExpired: { kind: "tell.sender", payload: { to: "ada" } } });
await inbox.putMany([{ content: "a" }, { content: Buffer.from("b"), key: "k" }, await inbox.draft("c")]);

for await (const { parcel: arrived, path } of inbox.poll({ into: "./inbox", every: "5s" })) {
  expectType<Same<typeof arrived, Parcel>>();
  expectType<Same<typeof path, string | undefined>>();
}
const { parcels } = await inbox.list({ state: ["waiting", "fetched"], order: "newest" });
expectType<Same<typeof parcels, Parcel[]>>();
const stream = (await inbox.open(parcel.id, { start: 5 })).stream();
expectType<Same<typeof stream, Readable>>();

// @ts-expect-error -- a function is no content
await inbox.put(() => 1);
// @ts-expect-error -- a bare number is no duration
await inbox.put("x", { ttl: 5 });
// @ts-expect-error -- there is no such state
await inbox.list({ state: "lost" });
// @ts-expect-error -- an unknown option
await inbox.put("x", { nmae: "x" });
