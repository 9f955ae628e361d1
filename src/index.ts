// The front door: re-exports only.
export { open } from "./open.ts";
export { defineConfig, type HoldfastConfig } from "./cli/config.ts";
export { SAMPLE_JOBS as sampleJobs } from "./cli/sample-jobs.ts";
export {
  defineApp,
  type App,
  type AppAuth,
  type AppAuthContext,
  type AppCommand,
  type AppCommandContext,
  type AppOptions,
  type AppPage,
  type AppRequest,
  type AppRoute,
  type AppStart,
  type FormPart,
} from "./apps/define-app.ts";
export { migrationsFrom } from "./apps/migrations-from.ts";
export { prepareApps, startApps, type StartAppsOptions } from "./apps/start-apps.ts";
export type { Holdfast } from "./client/client.ts";
export type { ActionOptions, ActionPage, Actions } from "./client/actions.ts";
export type { Audit, AuditPage } from "./client/audit.ts";
export type { Doctor } from "./client/doctor/doctor.ts";
export type { Finding, Repair } from "./client/doctor/finding.ts";
export type { Errors, ErrorsOptions } from "./client/errors.ts";
export type { ProblemReport } from "./client/problems.ts";
export type { SystemFacts } from "./client/system.ts";
export type { AuditEntry } from "./store/audit/list.ts";
export type { Enqueued } from "./client/enqueue.ts";
export type { EnqueueOptions, EnqueueRow } from "./client/new-job.ts";
export type { Applied, AppliedCommand, ApplyInput, BatchCommand } from "./batches/commands.ts";
export type {
  AckOptions,
  AddOptions,
  Batches,
  BatchListOptions,
  ControlOptions,
  CreatedBatchAnswer,
  ItemListOptions,
  RetryOptions,
} from "./batches/batches.ts";
export type { Change, Changes, ChangesOptions } from "./batches/changes.ts";
export type { CreateBatchOptions } from "./batches/create-options.ts";
export type { Content, ContentStream, Json } from "./inbox/content.ts";
export type { Inbox, Inboxes, InboxStats, ParcelListOptions, ParcelPage } from "./inbox/inbox.ts";
export type { OpenedContent, Range } from "./inbox/open-content.ts";
export type { Arrival, PollOptions } from "./inbox/poll.ts";
export type { Draft, PutFiles, PutParcel } from "./inbox/put.ts";
export type { FileOptions, PutFile, PutOptions } from "./inbox/put-options.ts";
export { fileName as savedFileName, saveFile, type FileSource, type SavedFile } from "./inbox/save-file.ts";
export type { Stuck } from "./inbox/stuck.ts";
export type { InboxOptions } from "./options/inbox.ts";
export type { Acked } from "./store/inbox/ack.ts";
export type { InboxFigures } from "./store/inbox/figures.ts";
export type { ExpiryReason, Parcel, ParcelState } from "./store/inbox/rows.ts";
export type { Jobs, ListOptions } from "./client/jobs.ts";
export type { Sql, SqlTransaction } from "./client/sql.ts";
export type { NewToken, Tokens } from "./client/tokens.ts";
export type { NewView, SignedView, View, Views } from "./client/views.ts";
export type { Workers } from "./client/workers.ts";
export type { HealthCheck, HealthReport, LiveReport } from "./client/health.ts";
export type { Metrics } from "./client/metrics.ts";
export type { QueueInfo, Queues } from "./client/queues.ts";
export type { Stats, StatsOptions } from "./client/stats.ts";
export { lockFolder, type FolderLock } from "./db/folder-lock.ts";
export { fromDrizzle } from "./db/caller-transaction.ts";
export type { Transaction } from "./job/caller-transaction.ts";
export type { Batch, BatchItem, BatchState, ItemState, OutcomeRule } from "./job/batch.ts";
export {
  defineBatch,
  type AnyBatchKind,
  type BatchKind,
  type BatchOptions,
  type HandBackOptions,
} from "./job/define-batch.ts";
export type { ItemContext, ItemEnd } from "./job/item.ts";
export { defineJob, type AnyJobKind, type JobKind, type JobOptions } from "./job/define-job.ts";
export {
  JobAborted,
  type AbortCause,
  type Chunk,
  type ChunkOptions,
  type Generation,
  type JobContext,
  type JobLog,
  type JobTransaction,
} from "./job/handler.ts";
export { defineChore, type Chore, type ChoreContext, type ChoreOptions } from "./job/define-chore.ts";
export type { ChorePreview, Janitor } from "./janitor/janitor.ts";
export type { ChoreResult } from "./janitor/run-chore.ts";
export type { ChoreRun } from "./store/janitor/chore-history.ts";
export type { FailedAttempt, Job, Progress } from "./job/job.ts";
export { Fatal, Gone, RetryAfter, Snooze, type ErrorRecord } from "./job/outcome.ts";
export type { Backoff } from "./job/retry-policy.ts";
export type { JobState, JobStatus } from "./job/states.ts";
export type { HoldfastEvents } from "./metrics/events.ts";
export type { AppMigration } from "./migrate/app-migrations.ts";
export type { Logger, OpenOptions, QueueOptions, WorkOptions } from "./options.ts";
export { durationMs, type Duration } from "./shared/duration.ts";
export type { Caller } from "./shared/caller.ts";
export type { Role } from "./shared/roles.ts";
export type { ErrorGroup } from "./store/batches/errors.ts";
export type { AccessToken } from "./store/tokens/rows.ts";
export type { Lease, WorkerInfo, WorkerList } from "./store/workers/list.ts";
export type { Worker } from "./worker/worker.ts";
export {
  Closed,
  ContentCorrupt,
  DatabaseUnavailable,
  FolderLocked,
  FolderUnusable,
  HoldfastError,
  KindUnknown,
  LeaseLost,
  NotFound,
  OptionInvalid,
  PayloadInvalid,
  QuotaExceeded,
  SchemaOutdated,
  SchemaTooNew,
  StateConflict,
  TooLarge,
  TransactionNested,
  WaitTimeout,
} from "./errors.ts";
