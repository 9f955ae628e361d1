import { defineJob, Fatal } from "holdfast";
import { z } from "zod";

export const greet = defineJob("greet", {
  // Checked when a job is enqueued and again when it runs; the dashboard makes a form of it.
  schema: z.object({ name: z.string().min(1).describe("Whom to greet") }),
  attempts: 3,
  backoff: ["1s", "10s"],
  async run(job) {
    // A Fatal is not tried again; any other error is, until the attempts are used up.
    if (job.payload.name === "nobody") throw new Fatal("There is nobody to greet");
    job.log.info(`Greeting ${job.payload.name}, attempt ${job.attempt}`);
    return { greeting: `Hello, ${job.payload.name}!` };
  },
});
