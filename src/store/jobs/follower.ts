// A job that follows the end of another, or of a batch, as it is stored there: JSON that somebody else has checked, or nobody.

/**
 * Nobody may say how many attempts it has any more, but rows are stored that do, and with anything: what cannot be read must not keep
 * them from their end. `follower`: the expression that it stands in.
 */
export const followerAttempts = (
  follower: string,
): string => `case when ${follower} ->> 'attempts' ~ '^[1-9][0-9]{0,2}$'
      then (${follower} ->> 'attempts')::integer else 5 end`;
