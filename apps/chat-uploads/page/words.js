// What a sender reads about a file, in the sender's own time zone.

const DAY_MS = 86_400_000;

/** "12:03", "tomorrow 12:03", "yesterday 12:03", or with the date. */
export function moment(at, now) {
  const date = new Date(at);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const days = Math.round((startOfDay(date) - startOfDay(now)) / DAY_MS);
  if (days === 0) return time;
  if (days === 1) return `tomorrow ${time}`;
  if (days === -1) return `yesterday ${time}`;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

const startOfDay = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();

const times = (count) => (count === 1 ? "1 try" : `${count} tries`);

function soon(at, now) {
  const seconds = Math.round((Date.parse(at) - now.getTime()) / 1000);
  if (seconds <= 0) return "now";
  return seconds < 90 ? `in ${seconds} s` : `at ${moment(at, now)}`;
}

export function words(status, now) {
  const { code, until, at, tries } = status;
  switch (code) {
    case "waiting":
      return "waiting for workspace";
    case "offline":
      return `workspace offline, kept until ${moment(until, now)}`;
    case "stuck":
      return `workspace polls but does not fetch it, kept until ${moment(until, now)}`;
    case "fetched":
      return "fetched, not confirmed yet";
    case "received":
      return `received ${moment(at, now)}`;
    case "expired":
      return status.reason === "never fetched" ? "expired, never fetched" : "expired, fetched but never confirmed";
    case "retrying":
      return `retrying (${times(tries)}) ${soon(status.nextAt, now)}`;
    case "undelivered":
      return `could not be delivered (${times(tries)})`;
    default:
      return "too long ago to know";
  }
}

export function bytes(count) {
  if (count < 1000) return count === 1 ? "1 byte" : `${count} bytes`;
  const [unit, size] = count < 1e6 ? ["kB", 1e3] : count < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${(count / size).toFixed(count / size < 10 ? 1 : 0)} ${unit}`;
}
