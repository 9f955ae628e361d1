// The texts of the sample site. Small, and long enough to be articles.

const TITLES = [
  "How lighthouses were counted",
  "A short history of the index card",
  "Bread that takes three days",
  "The postmen of the outer islands",
  "Why trains have numbers",
  "What a tide table leaves out",
  "Repairing a clock without its key",
  "The library that lent out tools",
  "Mapping a city by its smells",
  "The last typewriter shop",
  "Forty winters of one weather station",
  "Letters that came back",
];

const SENTENCES = [
  "Nobody had planned it, and for the first years nobody wrote it down.",
  "The oldest record is a notebook with a green cover, kept in a drawer that sticks when it rains.",
  "What began as a favour to a neighbour became a habit, then a rule, then an office with a door of its own.",
  "People who visited at the time remember the silence more than the work.",
  "There were never more than four of them, and they took turns so that the others could sleep.",
  "It is easy to forget how much of the day was spent waiting for something to dry.",
  "A list was made every evening, and every morning the list was found to be wrong by one.",
  "The mistake was small, and it was repeated for eleven years before anybody asked about it.",
  "Of the three methods in use, the slowest one turned out to need the least paper.",
  "Later historians have wondered why it was given up, since it cost next to nothing.",
  "The answer may be as plain as this: the person who knew how to do it moved away.",
  "In the summer of that year two visitors arrived with a camera and a great many questions.",
  "They stayed for a week, ate everything that was offered, and left a drawing behind.",
  "Today the drawing hangs in the hall, slightly crooked, and is corrected once a month.",
  "Whoever wants to see the original has to write a letter, and will get an answer by return of post.",
  "It takes patience, a good lamp and somebody who holds the other end.",
  "The first attempt failed within the hour; the second is still standing.",
  "None of this would matter if it were not for what happened the next spring.",
];

/** Enough paragraphs for an article, the same ones for the same number. */
function paragraphs(n: number): string[] {
  return Array.from({ length: 9 }, (_, at) =>
    Array.from({ length: 4 }, (__, more) => SENTENCES[(n * 7 + at * 5 + more * 3) % SENTENCES.length]).join(" "),
  );
}

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

interface PageParts {
  title: string;
  language?: string;
  body: string;
}

function page({ title, language = "en", body }: PageParts): string {
  return `<!doctype html>
<html lang="${language}"><head><meta charset="utf-8"><title>${escape(title)}</title>
<meta name="author" content="The Sample Gazette"><meta property="og:site_name" content="The Sample Gazette"></head>
<body><header><nav><a href="/">Home</a> <a href="/articles/1">News</a> <a href="/about">About</a></nav></header>
<main>${body}</main>
<footer><p>The Sample Gazette is served by this machine.</p></footer></body></html>`;
}

function titleOf(n: number): string {
  const title = TITLES[(n - 1) % TITLES.length]!;
  const round = Math.floor((n - 1) / TITLES.length);
  return round === 0 ? title : `${title}, part ${round + 1}`;
}

export function article(n: number): string {
  const text = paragraphs(n)
    .map((paragraph, at) => (at === 4 ? `<h2>What came later</h2><p>${paragraph}</p>` : `<p>${paragraph}</p>`))
    .join("\n");
  return page({
    title: titleOf(n),
    body: `<article><h1>${escape(titleOf(n))}</h1><p class="byline">By Ada Example</p>${text}
      <p>Read on: <a href="/articles/${(n % 12) + 1}">${escape(titleOf((n % 12) + 1))}</a>.</p></article>`,
  });
}

const GERMAN =
  "Über die Größe der Bühne wurde jahrelang gestritten, bis jemand auf die Idee kam, sie zu messen. " +
  "Das Ergebnis überraschte alle Beteiligten, am meisten die Geiger. " +
  "Seither hängt im Foyer ein Maßband, das niemand benützen darf. ";

/** In the encoding of old sites, which says so nowhere but in its header. */
export function germanArticle(): Buffer {
  const body = `<article><h1>Die Größe der Bühne</h1>${`<p>${GERMAN.repeat(3)}</p>`.repeat(6)}</article>`;
  const text = page({ title: "Die Größe der Bühne", language: "de", body });
  return Buffer.from(text.replace('<meta charset="utf-8">', ""), "latin1");
}

export function consentWall(): string {
  return page({
    title: "Before you continue",
    body: `<div class="dialog"><h1>We value your privacy</h1>
      <p>We and our 914 partners use cookies to store and read information on your device, to measure and to show advertising.</p>
      <p>You can accept all cookies, or choose your cookie settings. Your choice can be changed at any time.</p>
      <button>Accept all</button> <button>Settings</button></div>`,
  });
}

/** An article by somebody who would like to do more than be read. */
export function hostileArticle(): string {
  const text = paragraphs(3)
    .map((paragraph) => `<p onclick="alert(1)">${paragraph}</p>`)
    .join("\n");
  return page({
    title: 'Hostile <img src=x onerror="document.title=1">',
    body: `<article><h1>A page with a mind of its own</h1>${text}
      <script>document.body.textContent = "taken over"</script><img src="x" onerror="alert(1)">
      <p><a href="javascript:alert(1)">A link that is none</a> <a href="data:text/html,x">Another</a></p>
      <iframe src="https://example.com/"></iframe><svg><script>alert(1)</script></svg><style>*{display:none}</style>
      <form action="/steal"><input name="password"></form><math><mtext></mtext></math></article>`,
  });
}
