// Whether notifications arrive: sends one to itself. Behind a pooler in transaction mode none does, which is allowed.
import { randomBytes } from "node:crypto";
import type { Db } from "../../db/db.ts";
import { type Finding, ok, warning } from "./finding.ts";

const HEAR_WITHIN_MS = 5_000;

export async function checkListen(db: Db): Promise<Finding[]> {
  const channel = `holdfast_doctor_${randomBytes(8).toString("hex")}`;
  let hear: () => void = () => {};
  const heard = new Promise<true>((resolve) => (hear = () => resolve(true)));
  let ready: () => void = () => {};
  const listens = new Promise<true>((resolve) => (ready = () => resolve(true)));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, HEAR_WITHIN_MS, false)));
  const listening = db.listen(channel, { onMessage: () => hear(), onReady: () => ready() });
  listening.catch(() => {});
  try {
    if (!(await Promise.race([listens, late]))) return [DEAF];
    const sentAt = performance.now();
    await db.notify(channel, "");
    if (!(await Promise.race([heard, late]))) return [DEAF];
    return [ok("notifications", `arrive after ${(performance.now() - sentAt).toFixed(1)} ms`)];
  } finally {
    clearTimeout(timer);
    // One that is still trying would go on for ever. It answers in bounded time, and nobody has to wait for it.
    void listening.then(
      (listener) => listener.close(),
      () => {},
    );
  }
}

const DEAF = warning(
  "notifications",
  "Notifications do not arrive, as behind a pooler in transaction mode: workers find jobs by polling, within a second.",
  "Nothing has to be done. For milliseconds instead, give workers a direct connection to the server.",
);
