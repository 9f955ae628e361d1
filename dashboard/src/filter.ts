// The filter as people write it, and as the API takes it: status:dead kind:mail.send attempts:>=2 age:>5m payload.user.id:42
import { JOB_STATUSES } from "#src/job/states.js";
export interface Token {
  name: string;
  value: string;
}

export const NAMES = [
  "status",
  "kind",
  "queue",
  "key",
  "group",
  "error",
  "fingerprint",
  "attempts",
  "age",
  "payload.",
] as const;
export { JOB_STATUSES as STATUSES };

const WORD = /(?:([\w.-]+):)?(?:"([^"]*)"|(\S+))/g;

export function tokensOf(text: string): Token[] {
  return [...text.matchAll(WORD)].map(([, name = "error", quoted, bare]) => ({ name, value: quoted ?? bare ?? "" }));
}

export type FilterQuery = Record<string, string | undefined>;

/** For the query of GET /jobs. What it cannot say is told. */
export function toQuery(text: string): { query: FilterQuery; wrong: string[] } {
  const query: FilterQuery = {};
  const wrong: string[] = [];
  const payload: Record<string, string> = {};
  for (const { name, value } of tokensOf(text)) {
    if (name.startsWith("payload.")) payload[name.slice(8)] = value;
    else if (name === "attempts") readAttempts(value, query, wrong);
    else if (name === "age") readAge(value, query, wrong);
    else if (["status", "state", "kind", "queue", "key", "group", "error", "fingerprint"].includes(name))
      query[name] = value;
    else wrong.push(`${name}: is not something to filter by`);
  }
  if (Object.keys(payload).length > 0) query["payload"] = JSON.stringify(payload);
  return { query, wrong };
}

function readAttempts(value: string, query: FilterQuery, wrong: string[]): void {
  const [, sign = "", digits] = /^(>=|<=|>|<|)(\d{1,6})$/.exec(value) ?? [];
  if (digits === undefined) {
    wrong.push("attempts: wants a number, such as >=2");
    return;
  }
  const number = Number(digits);
  if (sign === ">") query["leastAttempts"] = String(number + 1);
  else if (sign === "<") query["mostAttempts"] = String(Math.max(0, number - 1));
  if (sign === ">=" || sign === "") query["leastAttempts"] = digits;
  if (sign === "<=" || sign === "") query["mostAttempts"] = digits;
}

function readAge(value: string, query: FilterQuery, wrong: string[]): void {
  const [, sign = ">", duration] = /^(>|<|)(\d+(?:ms|s|m|h|d))$/.exec(value) ?? [];
  if (duration === undefined) wrong.push("age: wants a duration, such as >5m");
  else query[sign === "<" ? "youngerThan" : "olderThan"] = duration;
}

/** For the body of POST /actions. */
export function toFilter({
  payload,
  leastAttempts,
  mostAttempts,
  status,
  state,
  ...rest
}: FilterQuery): Record<string, unknown> {
  return {
    ...rest,
    ...(status === undefined ? {} : { status: status.split(",") }),
    ...(state === undefined ? {} : { state: state.split(",") }),
    ...(payload === undefined ? {} : { payload: JSON.parse(payload) as unknown }),
    ...(leastAttempts === undefined ? {} : { leastAttempts: Number(leastAttempts) }),
    ...(mostAttempts === undefined ? {} : { mostAttempts: Number(mostAttempts) }),
  };
}

const written = ({ name, value }: Token): string =>
  `${name}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`;

/** With this token, instead of others of its name. */
export function withToken(text: string, name: string, value: string | null): string {
  const others = tokensOf(text).filter((token) => token.name !== name);
  return [...(value === null ? [] : [{ name, value }]), ...others].map(written).join(" ");
}
