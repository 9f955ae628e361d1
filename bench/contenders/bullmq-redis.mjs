// BullMQ on Redis, which keeps everything in memory here: not durable.
import { Queue, Worker } from "bullmq";
import { setupBullMQ } from "./bullmq.mjs";

export function setup(url, tuning) {
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port) };
  const workerConnection = { ...connection, maxRetriesPerRequest: null };
  return setupBullMQ({ Queue, Worker, connection, workerConnection }, tuning);
}
