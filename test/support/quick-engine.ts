// The embedded database is WebAssembly. V8 first compiles it quickly and then, meanwhile, once more with care, which takes
// most of the processor time of a process that lives for seconds. A node that is started with this leaves it at the first.
export const QUICK_ENGINE = ["--liftoff-only"];
