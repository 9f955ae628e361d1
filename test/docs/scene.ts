// What the blocks of a page find: a database of their own in DATABASE_URL, and for commands a server on it, with a worker and
// the kinds that the pages speak of.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { serve } from "#src/http/index.js";
import { defineBatch, open, sampleJobs } from "#src/index.js";
import { createMigratedDatabase } from "../support/database.ts";
import type { Project } from "./project.ts";

export interface Scene {
  /** host:port of the server. */
  readonly address: string;
  /** With a database of its own: the server's worker must not run what the ts blocks enqueue. */
  readonly env: Record<string, string>;
  readonly shEnv: Record<string, string>;
  close(): Promise<void>;
}

const importArticles = defineBatch("articles.import", {
  schema: z.object({ url: z.string() }),
  outcomes: { saved: {} },
  run: () => "saved" as const,
});

export async function makeScene({ own, withServer }: { own: Project; withServer: boolean }): Promise<Scene> {
  const first = await createMigratedDatabase();
  const env = { DATABASE_URL: first.url, ORDERS_TOKEN: `123456:${"A".repeat(35)}`, ORDERS_SECRET: "s".repeat(32) };
  if (!withServer) return { address: "", env, shEnv: {}, close: () => first.drop() };
  const database = await createMigratedDatabase();
  own.write("cat.png", randomBytes(1_000));
  own.write("dog.png", randomBytes(1_000));
  own.write("urls.ndjson", '{"url":"https://a.example"}\n{"url":"https://b.example"}\n');
  const hf = await open({ database: database.url });
  const kinds = [...sampleJobs, importArticles];
  const token = randomBytes(16).toString("hex");
  const server = await serve({ hf, kinds, port: 0, token });
  const worker = await hf.work(kinds);
  return {
    address: new URL(server.url).host,
    env,
    shEnv: { DATABASE_URL: database.url, HOLDFAST_TOKEN: token, HOLDFAST_URL: server.url },
    async close() {
      await worker.stop();
      await server.close();
      await hf.close();
      await database.drop();
      await first.drop();
    },
  };
}
