// What may be sent. The inbox's limits are the only source; everybody else asks here or at GET /uploads/limits.
import type { AppRoute, Holdfast } from "holdfast";

export interface UploadLimits {
  per_file_bytes: number;
  per_request_bytes: number;
  max_attachments_per_message: number;
}

export function limitsOf(hf: Holdfast): UploadLimits {
  const { maxFileBytes, maxFilesPerPut, quotaBytes } = hf.inboxes.limits;
  return {
    per_file_bytes: maxFileBytes,
    per_request_bytes: Math.max(maxFileBytes, Math.min(maxFileBytes * maxFilesPerPut, quotaBytes)),
    max_attachments_per_message: maxFilesPerPut,
  };
}

export const limitsRoute: AppRoute = {
  method: "GET",
  path: "/uploads/limits",
  auth: "public",
  handle: ({ hf }) => limitsOf(hf),
};
