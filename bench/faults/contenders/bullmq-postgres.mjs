// BullMQ on PostgreSQL: https://docs.bullmq.io/guide/postgresql
import { createPostgresBackend, withBackend } from "bullmq";
import { makeBullMQ } from "./bullmq.mjs";

export const title = "BullMQ on PostgreSQL";

export const { leaseMs, openClient, openWorker, look } = makeBullMQ({
  ...withBackend(createPostgresBackend),
  connect: (url) => ({ connectionString: url, max: 20, migrate: true }),
});
