// A migration's text as single statements. A semicolon ends one, except in a text, a name, a comment or a body between
// dollar quotes.

const PART = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g;

export function splitStatements(sql: string): string[] {
  const statements: string[] = [];
  let from = 0;
  for (const { 0: token, index } of sql.matchAll(PART)) {
    if (token !== ";") continue;
    statements.push(sql.slice(from, index));
    from = index + 1;
  }
  statements.push(sql.slice(from));
  return statements.map((statement) => statement.trim()).filter((statement) => withoutComments(statement) !== "");
}

function withoutComments(statement: string): string {
  return statement.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\//g, "").trim();
}
