// `holdfast jobs wach`: commander would hand the word to `jobs list`, which takes none, and say so. It is a slip of the pen,
// and the word that was meant is suggested, as for any other command.
import { Command } from "commander";

export function refuseUnknownSubcommand(program: Command, [first, word]: readonly string[]): void {
  const group = program.commands.find((command) => command.name() === first);
  if (!group || group.commands.length === 0 || word === undefined || word.startsWith("-") || word === "help") return;
  if (group.commands.some((command) => command.name() === word)) return;
  // The same names without a default: what is none of them is unknown.
  const names = new Command(group.name()).exitOverride();
  for (const command of group.commands) names.command(command.name());
  names.parse([word], { from: "user" });
}
