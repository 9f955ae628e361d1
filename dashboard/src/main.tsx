// First: the others need a language that is one.
import "./locale.ts";
import { render } from "preact";
import { startLive } from "./api/live.ts";
import { App } from "./app.tsx";
import "./styles.css";

startLive();
render(<App />, document.getElementById("app")!);
