// Builds the dashboard into the package: dist/dashboard. Addresses are relative, so that it works under any path.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "./",
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist/dashboard",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    // A page under a strict policy loads no data: addresses.
    assetsInlineLimit: 0,
  },
});
