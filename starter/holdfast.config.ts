import { defineConfig } from "holdfast";
import { greet } from "./jobs/greet.ts";

// While `npm run dev` runs, changes here and in what is imported here are taken over at once.
export default defineConfig({
  jobs: [greet],
});
