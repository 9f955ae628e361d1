// The sample workspace of `holdfast dev`: what it is said to be is what it is.
import { beforeAll, describe, expect, test } from "vitest";
import { useHoldfast } from "../../../test/support/open-test.ts";
import { openScene, type Scene } from "./scene.ts";

describe("the sample workspace", () => {
  const bench = useHoldfast("server");
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene(bench.hf, {}, "dev");
  });

  const sampleNow = async (): Promise<{ id: string; mood: string }> =>
    (await scene.call("GET", "/workspaces")).json.sample;

  test("one that ended by an error is called stopped, and can be started again", async () => {
    const { id } = await sampleNow();
    const be = (mood: string) => scene.call("POST", `/workspaces/${id}/sample`, { body: { mood } });
    const answers = async (): Promise<number> =>
      (await scene.call("GET", `/workspaces/${id}/chat`)).json.messages.filter(
        ({ author }: { author: string }) => author === "workspace",
      ).length;
    expect((await be("running")).json).toEqual({ id, mood: "running" });
    await scene.say(id, "one");
    await expect.poll(answers, { timeout: 10_000 }).toBe(1);
    // Its token ends after a week, too.
    for (const token of await bench.hf.tokens.list()) {
      if (token.recipient === id) await bench.hf.tokens.revoke(token.id);
    }
    await scene.say(id, "two");
    await expect.poll(async () => (await sampleNow()).mood, { timeout: 10_000 }).toBe("stopped");
    expect((await be("running")).json).toEqual({ id, mood: "running" });
    await expect.poll(answers, { timeout: 10_000 }).toBe(2);
    // Who is stopped on purpose stays what it was told to be.
    expect((await be("stuck")).json).toEqual({ id, mood: "stuck" });
    expect((await sampleNow()).mood).toBe("stuck");
  }, 40_000);
});
