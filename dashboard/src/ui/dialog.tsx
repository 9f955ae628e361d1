// A question that must be answered first. The browser's own dialog keeps the focus inside and gives it back.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog({
  title,
  onClose,
  children,
  look = "",
}: {
  title: string;
  onClose(): void;
  children: ComponentChildren;
  look?: string;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    element?.showModal();
    return () => {
      element?.close();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog ${look}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-inside">{children}</div>
    </dialog>
  );
}

export interface Question {
  title: string;
  text: ComponentChildren;
  /** What the button says: the verb. */
  yes: string;
  isDangerous?: boolean;
}

export function Confirm({
  question,
  onYes,
  onClose,
  children,
}: {
  question: Question;
  onYes(): void;
  onClose(): void;
  children?: ComponentChildren;
}) {
  return (
    <Dialog title={question.title} onClose={onClose}>
      <h2>{question.title}</h2>
      <div class="stack">
        <p>{question.text}</p>
        {children}
      </div>
      <div class="row row-end">
        <button type="button" class="button" onClick={onClose}>
          Keep as it is
        </button>
        <button type="button" class={`button ${question.isDangerous ? "button-bad" : "button-main"}`} onClick={onYes}>
          {question.yes}
        </button>
      </div>
    </Dialog>
  );
}
