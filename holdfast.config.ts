// What `npm start` runs in this repository: the sample kinds and the apps.
import { defineConfig, sampleJobs } from "holdfast";
import { apiCatalog } from "./apps/api-catalog/src/index.ts";
import { articleImport } from "./apps/article-import/src/index.ts";
import { chatUploads } from "./apps/chat-uploads/src/index.ts";
import { telegramGateway } from "./apps/telegram-gateway/src/index.ts";

export default defineConfig({
  jobs: sampleJobs,
  apps: [telegramGateway(), articleImport(), chatUploads(), apiCatalog()],
});
