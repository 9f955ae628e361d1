// Who is signed in. A session is the user's, for all bots, and ends by the database's clock. Guessing is slow: who has
// shown five wrong secrets is not listened to for a quarter of an hour.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Holdfast } from "holdfast";

export type SignIn = "signed-in" | "wrong" | "too-many";

const MAX_WRONG = 5;
const WRONG_WITHIN = "15 minutes";
/** A session that was seen is not asked for again for this long. */
const REMEMBER_MS = 10_000;
const REMEMBER_USERS = 10_000;

export interface Sessions {
  isSignedIn(user: number): Promise<boolean>;
  signIn(user: number, shown: string): Promise<SignIn>;
}

export function makeSessions(hf: Holdfast, secret: string | undefined, ttlMs: number): Sessions {
  const seen = new Map<number, number>();
  return {
    async isSignedIn(user) {
      const until = seen.get(user);
      if (until !== undefined && until > performance.now()) return true;
      const { rows } = await hf.sql.query<{ left_ms: number }>(
        `select extract(epoch from until_at - :schema.clock())::float8 * 1000 as left_ms
         from :schema.telegram_sessions where user_id = $1 and until_at > :schema.clock()`,
        [user],
      );
      if (!rows[0]) return false;
      if (seen.size >= REMEMBER_USERS) seen.clear();
      seen.set(user, performance.now() + Math.min(REMEMBER_MS, rows[0].left_ms));
      return true;
    },
    async signIn(user, shown) {
      // Counted before it is compared, so that many at once are no way around it.
      const { rows } = await hf.sql.query<{ wrong_count: number }>(
        `insert into :schema.telegram_sessions as s (user_id, wrong_count, wrong_since_at)
         values ($1, 1, :schema.clock())
         on conflict (user_id) do update set
           wrong_count = case when s.wrong_since_at > :schema.clock() - $2::interval then least(s.wrong_count + 1, 1000) else 1 end,
           wrong_since_at = case when s.wrong_since_at > :schema.clock() - $2::interval then s.wrong_since_at else :schema.clock() end
         returning wrong_count`,
        [user, WRONG_WITHIN],
      );
      if ((rows[0]?.wrong_count ?? 0) > MAX_WRONG) return "too-many";
      if (secret === undefined || !timingSafeEqual(digest(shown), digest(secret))) return "wrong";
      await hf.sql.query(
        `update :schema.telegram_sessions set wrong_count = 0, wrong_since_at = null,
           until_at = :schema.clock() + make_interval(secs => $2) where user_id = $1`,
        [user, ttlMs / 1_000],
      );
      return "signed-in";
    },
  };
}

export function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
