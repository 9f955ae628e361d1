// BullMQ on Redis, with the strongest persistence Redis has (appendfsync always).
import { Queue, Worker } from "bullmq";
import { makeBullMQ } from "./bullmq.mjs";

export const title = "BullMQ on Redis";
export const server = "redis";

function connect(url) {
  const { hostname: host, port } = new URL(url);
  return { host, port: Number(port) };
}

export const { leaseMs, openClient, openWorker, look } = makeBullMQ({
  Queue,
  Worker,
  connect,
  connectWorker: (url) => ({ ...connect(url), maxRetriesPerRequest: null }),
});
