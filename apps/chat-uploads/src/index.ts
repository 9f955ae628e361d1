// The door of the app: re-exports only.
export { chatUploads } from "./chat-uploads.ts";
export type { Announcement } from "./announcements.ts";
export type { ChatUploadsOptions } from "./options.ts";
export { pullWorkspace, type PullOptions, type Pulled } from "./workspace/pull.ts";
export type { JournalEntry, ReceivedFile, ReceivedMessage } from "./workspace/journal.ts";
