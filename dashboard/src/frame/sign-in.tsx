// For a server that wants a token. It is kept for this tab and sent with every question, nowhere else.
import { useState } from "preact/hooks";
import { isLocked, signIn, token } from "../api/call.ts";

export function SignIn() {
  const [text, write] = useState("");
  const wasWrong = token.value !== null;
  return (
    <main class="sign-in">
      <form
        class="panel sign-in-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() !== "") signIn(text.trim());
        }}
      >
        <h1>Holdfast</h1>
        <p>{wasWrong ? "The server does not take this token, or not any more." : isLocked.value}</p>
        <label class="field">
          <span>Access token</span>
          <input
            class="input"
            type="password"
            autoComplete="off"
            spellcheck={false}
            value={text}
            autoFocus
            onInput={(event) => write(event.currentTarget.value)}
          />
        </label>
        <p class="quiet">
          The server’s own is in <code>HOLDFAST_TOKEN</code>; <code>holdfast token create --role viewer</code> makes
          another. It is forgotten when the tab is closed.
        </p>
        <button type="submit" class="button button-main">
          Sign in
        </button>
      </form>
    </main>
  );
}
