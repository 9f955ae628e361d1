// The embedded database is WebAssembly. V8 first compiles it quickly and then, in the background, compiles once more with care
// whatever runs more than a little, which takes most of the processor time of a process that lives for seconds. With this
// it takes that trouble only for what runs very much, five hundred times as much as by default.
export const QUICK_ENGINE = ["--wasm-tiering-budget=1000000000"];
