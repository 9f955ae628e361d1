// Some systems give browsers a language that is none ("en-US@posix"), and what formats numbers then throws as it is loaded.
function isLanguage(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
}

if (!isLanguage(navigator.language)) Object.defineProperty(navigator, "language", { value: "en" });
