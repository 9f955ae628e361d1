// The same from CommonJS: TypeScript 5.8 and newer know that Node requires ES modules.
import holdfast = require("holdfast");
import http = require("holdfast/http");
import testing = require("holdfast/testing");
import guardedFetch = require("holdfast/guarded-fetch");

export const greet = holdfast.defineJob<{ name: string }>("greet", { run: (job) => job.payload.name });

export async function main(): Promise<http.Handler> {
  const hf: testing.TestHoldfast = await testing.openTest();
  await hf.enqueue(greet, { name: "Ada" });
  void guardedFetch.isPublicAddress("127.0.0.1");
  return http.makeHandler({ hf, kinds: [greet] });
}
