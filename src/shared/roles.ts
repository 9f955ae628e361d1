// What somebody may do over HTTP: look; act on jobs, queues and parcels; clean up and hand out tokens. Each may do what
// the one before it may.

export const ROLES = ["viewer", "operator", "admin"] as const;
/** What an access token may do, from least to most: viewer, operator, admin. */
export type Role = (typeof ROLES)[number];

export function hasRole(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}
