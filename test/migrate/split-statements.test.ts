import { expect, test } from "vitest";
import { splitStatements } from "#src/migrate/split-statements.js";

test.each([
  ["one", "select 1", ["select 1"]],
  ["two on a line", "select 1; select 2;", ["select 1", "select 2"]],
  ["a text with one in it", "select ';''; --'; select 2", ["select ';''; --'", "select 2"]],
  ["a name with one in it", 'select 1 as "a;""b"; select 2', ['select 1 as "a;""b"', "select 2"]],
  ["a comment with one in it", "select 1 -- a; b\n; select 2", ["select 1 -- a; b", "select 2"]],
  ["a long comment", "/* a; 'b */ select 1", ["/* a; 'b */ select 1"]],
  ["a body", "do $x$ begin; $$;$$ end; $x$; select 2", ["do $x$ begin; $$;$$ end; $x$", "select 2"]],
  ["parameters of a body without a tag", "do $$ begin; end $$; select $1", ["do $$ begin; end $$", "select $1"]],
  ["nothing but comments", "-- a\n;\n/* b */;", []],
])("%s", (_, sql, statements) => {
  expect(splitStatements(sql)).toEqual(statements);
});
