// Who is looking, and what they may do.
import { effect, signal } from "@preact/signals";
import { call, isLocked, type Output, token } from "../api/call.ts";
import { tick } from "../api/live.ts";

export const me = signal<Output<"readMe"> | null>(null);

const RANK = { viewer: 0, operator: 1, admin: 2 } as const;
export const may = (role: keyof typeof RANK): boolean => me.value !== null && RANK[me.value.role] >= RANK[role];

let askedWith: string | null | undefined;
effect(() => {
  void tick.value;
  if (isLocked.value !== null || (me.peek() !== null && askedWith === token.value)) return;
  askedWith = token.value;
  call("readMe").then(
    (answer) => (me.value = answer),
    () => undefined,
  );
});
