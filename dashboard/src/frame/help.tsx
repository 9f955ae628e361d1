// Which keys there are. They can be switched off: a single letter is easily typed, or said, by accident.
import { signal } from "@preact/signals";
import { SCREENS } from "../screens.ts";
import { Dialog } from "../ui/dialog.tsx";

export const isHelpOpen = signal(false);
const STORE = "holdfast-keys";
export const areKeysOn = signal(localStorage.getItem(STORE) !== "off");

const KEYS: [string, string][] = [
  ["⌘K, Ctrl K", "Find or do anything"],
  ["/", "To the filter"],
  ["j, k", "Next row, row before"],
  ["x", "Select the row; with Shift, up to here"],
  ["Enter", "Open the row"],
  ["p", "Pause, go on"],
  ["t", "Other colours"],
  ["Esc", "Close"],
  ["?", "This"],
];

export function Help() {
  if (!isHelpOpen.value) return null;
  const close = () => (isHelpOpen.value = false);
  return (
    <Dialog title="Keys" onClose={close}>
      <h2>Keys</h2>
      <dl class="keys">
        {[...KEYS, ...SCREENS.map(({ key, title }) => [`g ${key}`, `To ${title}`] as [string, string])].map(
          ([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ),
        )}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={areKeysOn.value}
          onChange={(event) => {
            areKeysOn.value = event.currentTarget.checked;
            localStorage.setItem(STORE, areKeysOn.value ? "on" : "off");
          }}
        />
        Single keys do something
      </label>
      <div class="row row-end">
        <button type="button" class="button button-main" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
