// holdfast completion: a script for a shell, which asks `holdfast __complete WORDS` what may come next. What may is read
// from the commands themselves, so that it is never behind them.
import { type Command, Option } from "commander";
import { EXIT } from "../exit-codes.ts";
import { print } from "../output.ts";
import { Problem } from "../problem.ts";

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_holdfast() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(holdfast __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _holdfast holdfast`,
  zsh: `#compdef holdfast
_holdfast() {
  local -a found
  found=("\${(@f)$(holdfast __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
  (( \${#found} )) || _files
}
compdef _holdfast holdfast`,
  // An empty word would be lost on its way to the program: two quotes stand for it.
  powershell: `Register-ArgumentCompleter -Native -CommandName holdfast -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
  if (-not $wordToComplete) { $words += "''" }
  holdfast __complete @words 2>$null | Where-Object { $_ } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}`,
  fish: `complete -c holdfast -f -a '(holdfast __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'`,
};

const USE = `
Use:
  bash   holdfast completion bash >> ~/.bashrc
  zsh    holdfast completion zsh > "\${fpath[1]}/_holdfast"
  fish   holdfast completion fish > ~/.config/fish/completions/holdfast.fish
  PowerShell   holdfast completion powershell >> $PROFILE
`;

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .summary("print a script that completes commands in your shell")
    .argument("<shell>", "bash, zsh, fish or powershell")
    .addHelpText("after", USE)
    .action((shell: string) => {
      const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
      if (script === undefined) {
        throw new Problem(
          `There is no completion for ${JSON.stringify(shell)}.`,
          "Give bash, zsh, fish or powershell.",
          EXIT.usage,
        );
      }
      print(script);
    });
}

/** How PowerShell says that nothing has been typed yet. */
const EMPTY = "''";

/** What may stand in the place of the last word. */
export function completionsOf(program: Command, words: readonly string[]): string[] {
  let command = program;
  let takesValue = false;
  for (const word of words.slice(0, -1)) {
    if (takesValue) {
      takesValue = false;
      continue;
    }
    if (word.startsWith("-")) {
      const option = command.options.find(({ long, short }) => word === long || word === short);
      takesValue = option?.required === true || option?.optional === true;
      continue;
    }
    command = command.commands.find((inner) => inner.name() === word || inner.aliases().includes(word)) ?? command;
  }
  const last = words.at(-1) === EMPTY ? "" : (words.at(-1) ?? "");
  const previous = words.at(-2) ?? "";
  if (takesValue) {
    const option = command.options.find(({ long, short }) => previous === long || previous === short);
    return (option?.argChoices ?? []).filter((choice) => choice.startsWith(last));
  }
  const found = last.startsWith("-")
    ? [...command.options, new Option("--help", "")].flatMap(({ long, hidden }) =>
        typeof long !== "string" || hidden ? [] : [long],
      )
    : command.commands.map((inner) => inner.name());
  return found.filter((name) => name.startsWith(last)).toSorted();
}
