// BullMQ on PostgreSQL.
import { createPostgresBackend, withBackend } from "bullmq";
import { setupBullMQ } from "./bullmq.mjs";

/** Less than a thousand jobs a second, so it gets a twentieth of the jobs. */
export const share = 0.05;

export function setup(url, tuning) {
  const connection = { connectionString: url, max: 20, migrate: true };
  return setupBullMQ({ ...withBackend(createPostgresBackend), connection }, tuning);
}
