// The frame around every screen: navigation, how live it is, who is looking; and the screen itself.
import { useEffect } from "preact/hooks";
import { isLocked } from "./api/call.ts";
import { startKeys } from "./frame/keys.ts";
import { Help } from "./frame/help.tsx";
import { Nav } from "./frame/nav.tsx";
import { Palette } from "./frame/palette.tsx";
import { SignIn } from "./frame/sign-in.tsx";
import { Toasts } from "./frame/toasts.tsx";
import { TopBar } from "./frame/top-bar.tsx";
import { place } from "./router.ts";
import { ActionsScreen } from "./screens/actions.tsx";
import { BatchScreen } from "./screens/batch.tsx";
import { BatchesScreen } from "./screens/batches.tsx";
import { DeadScreen } from "./screens/dead.tsx";
import { EnqueueScreen } from "./screens/enqueue.tsx";
import { ErrorsScreen } from "./screens/errors.tsx";
import { InboxScreen } from "./screens/inbox.tsx";
import { JanitorScreen } from "./screens/janitor.tsx";
import { JobScreen } from "./screens/job.tsx";
import { JobsScreen } from "./screens/jobs.tsx";
import { OverviewScreen } from "./screens/overview.tsx";
import { QueueScreen } from "./screens/queue.tsx";
import { QueuesScreen } from "./screens/queues.tsx";
import { RecipientScreen } from "./screens/recipient.tsx";
import { SystemScreen } from "./screens/system.tsx";
import { WorkersScreen } from "./screens/workers.tsx";
import { Empty, Screen } from "./ui/parts.tsx";

export function App() {
  useEffect(startKeys, []);
  const { path } = place.value;
  const here = path.join("/");
  useEffect(() => {
    scrollTo(0, 0);
    // For who does not see that the screen has changed.
    if (here !== "") document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
  }, [here]);
  if (isLocked.value !== null) return <SignIn />;
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <div class="frame">
        <Nav />
        <div class="content">
          <TopBar />
          <main id="main" tabIndex={-1} key={path[0] ?? ""}>
            <Here path={path} />
          </main>
        </div>
      </div>
      <Toasts />
      <Palette />
      <Help />
    </>
  );
}

/** The part behind # is ours. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Here({ path: [first, second] }: { path: string[] }) {
  switch (first) {
    case undefined:
      return <OverviewScreen />;
    case "queues":
      return second === undefined ? <QueuesScreen /> : <QueueScreen queue={second} />;
    case "jobs":
      return second === undefined ? <JobsScreen /> : <JobScreen id={second} />;
    case "batches":
      return second === undefined ? <BatchesScreen /> : <BatchScreen id={second} />;
    case "errors":
      return <ErrorsScreen />;
    case "dead":
      return <DeadScreen />;
    case "workers":
      return <WorkersScreen />;
    case "inbox":
      return second === undefined ? <InboxScreen /> : <RecipientScreen recipient={second} />;
    case "actions":
      return <ActionsScreen />;
    case "janitor":
      return <JanitorScreen />;
    case "enqueue":
      return <EnqueueScreen />;
    case "system":
      return <SystemScreen />;
    default:
      return (
        <Screen title="Not here">
          <Empty title="There is no such page.">
            <a href="#/">To the overview</a>
          </Empty>
        </Screen>
      );
  }
}
