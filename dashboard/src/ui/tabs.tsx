// One of a few, of which one is chosen; undefined is all of them.
export interface TabsProps<Choice extends string> {
  label: string;
  choices: readonly (Choice | undefined)[];
  chosen: string | undefined;
  onChoose(choice: Choice | undefined): void;
  /** What stands on it, if that is not its name. */
  wordsOf?(choice: Choice): string;
}

export function Tabs<Choice extends string>({ label, choices, chosen, onChoose, wordsOf }: TabsProps<Choice>) {
  return (
    <div class="tabs tabs-scroll" role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice ?? "all"}
          type="button"
          class="tab"
          aria-pressed={chosen === choice}
          onClick={() => onChoose(choice)}
        >
          {choice === undefined ? "all" : (wordsOf?.(choice) ?? choice)}
        </button>
      ))}
    </div>
  );
}
