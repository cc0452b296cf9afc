// `ringwise completion SHELL` prints a script that completes commands, flags and their values. It is generated from the
// tables of commands and flags, so it matches this version. Words after the script are completed as files.

import { badArgument, unknownWord } from '../errors.ts';
import { nearest } from '../nearest.ts';
import { type Command, commands, type Shell, shells } from './commands.ts';
import { type Flag, flags } from './flags.ts';

const usage = `ringwise completion ${shells.join('|')}

Prints a script that completes commands, flags and their values.

  bash: add to ~/.bashrc:  source <(ringwise completion bash)
  zsh:  add to ~/.zshrc, after compinit:  source <(ringwise completion zsh)
  fish: ringwise completion fish > ~/.config/fish/completions/ringwise.fish

It is for the command \`ringwise\` in PATH; it does not complete words after npx.
`;

/** Runs `ringwise completion`. Returns the exit code. Throws ERR_LAUNCH_ARGUMENT for another shell. */
export function completion(argv: readonly string[]): number {
  const [word, extra] = argv;
  if (word === '--help' || word === '-h') {
    process.stdout.write(usage);
    return 0;
  }
  const shell = shells.find((each) => each === word);
  if (word === undefined)
    throw badArgument('ringwise completion', 'the first argument', shells.join(', '), '');
  if (!shell) throw unknownWord('ringwise completion', 'shell', word, nearest(word, shells));
  if (extra !== undefined) throw unknownWord('ringwise completion', 'argument', extra, undefined);
  process.stdout.write(scripts[shell]());
  return 0;
}

const scripts: Readonly<Record<Shell, () => string>> = { bash, zsh, fish };

const help: Flag = { name: 'help', short: 'h', help: 'show the flags' };
const allFlags: readonly Flag[] = [...flags, help];
const wordsOf = (flag: Flag) => [`--${flag.name}`, ...(flag.short ? [`-${flag.short}`] : [])];
/** Flags whose value is the next word. */
const withWord = allFlags.filter((flag) => flag.value && !flag.isValueOptional);
const takesFolder = ({ value }: Flag) => value === 'DIR';
const takesFile = ({ value }: Flag) => value === 'FILE';
const commandNames = commands.map(({ name }) => name);

function bash(): string {
  const values = withWord.map((flag) => {
    const words = (flag.choices ?? []).join(' ');
    const action = takesFolder(flag)
      ? '_ringwise_files -d'
      : takesFile(flag)
        ? '_ringwise_files -f'
        : `COMPREPLY=($(compgen -W '${words}' -- "$cur"))`;
    return `      ${wordsOf(flag).join('|')}) ${action}; return ;;`;
  });
  const others = commands.filter(({ name }) => name !== 'run').map(bashCommand);
  return `# bash completion for ringwise
_ringwise_files() {
  local IFS=$'\\n'
  COMPREPLY+=($(compgen "$1" -- "$cur"))
}
_ringwise() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" i word
  COMPREPLY=()
  # Bash splits --flag=value into three words.
  if [[ "$cur" == "=" ]]; then
    cur=""
  elif [[ "$prev" == "=" ]] && ((COMP_CWORD > 2)); then
    prev="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "\${COMP_WORDS[1]}" in
${others.join('\n')}
  esac
  # Find out whether the script is there already: the first word that is neither a flag nor a flag's value.
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    case "$word" in
      run) ((i == 1)) || { _ringwise_files -f; return; } ;;
      ${withWord.flatMap(wordsOf).join('|')}) ((i++)) ;;
      -*|=) ;;
      *) [[ "\${COMP_WORDS[i-1]}" == "=" ]] || { _ringwise_files -f; return; } ;;
    esac
  done
  if ((COMP_CWORD > 1)); then
    case "$prev" in
${values.join('\n')}
    esac
  fi
  if [[ "$cur" == -* ]]; then
    COMPREPLY=($(compgen -W '${allFlags.flatMap(wordsOf).join(' ')}' -- "$cur"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${commandNames.join(' ')}' -- "$cur"))
    _ringwise_files -f
  else
    _ringwise_files -f
  fi
}
complete -o filenames -F _ringwise ringwise
`;
}

function bashCommand({ name, words = [], takesFiles }: Command): string {
  const files = takesFiles ? '_ringwise_files -f; ' : '';
  const action = `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur")); ${files}`;
  return `    ${name}) if ((COMP_CWORD > 1)); then ${action}return; fi ;;`;
}

function zsh(): string {
  const quoted = (text: string) => text.replaceAll("'", "'\\''");
  const inBrackets = (text: string) => quoted(text.replace(/[[\]\\:]/g, '\\$&'));
  const specs = allFlags.map((flag) => {
    const names =
      flag.short === undefined
        ? `'--${flag.name}`
        : `'(-${flag.short} --${flag.name})'{-${flag.short},--${flag.name}}'`;
    if (!flag.value) return `    ${names}[${inBrackets(flag.help)}]'`;
    const [sign, colon] = flag.isValueOptional ? ['=-', '::'] : [flag.short ? '' : '=', ':'];
    return `    ${names}${sign}[${inBrackets(flag.help)}]${colon}${inBrackets(flag.value)}:${zshAction(flag)}'`;
  });
  const named = commands.map(({ name, help }) => `    '${name}:${quoted(help)}'`);
  const others = commands.filter(({ name }) => name !== 'run').map(zshCommand);
  return `# zsh completion for ringwise
_ringwise_run() {
  _arguments -S ${'\\'}
${specs.map((spec) => `${spec} ${'\\'}`).join('\n')}
    '1:script:_files' ${'\\'}
    '*::arguments of the script:_files'
}
_ringwise() {
  local -a commands
  commands=(
${named.join('\n')}
  )
  if ((CURRENT == 2)) && [[ "\${words[2]}" != -* ]]; then
    _describe -t commands command commands
    _files
    return
  fi
  case "\${words[2]}" in
    run) shift words; ((CURRENT--)); _ringwise_run ;;
${others.join('\n')}
    *) _ringwise_run ;;
  esac
}
compdef _ringwise ringwise
`;
}

function zshAction(flag: Flag): string {
  if (flag.choices) return `(${flag.choices.join(' ')})`;
  return takesFolder(flag) ? '_files -/' : takesFile(flag) ? '_files' : ' ';
}

function zshCommand({ name, words = [], takesFiles }: Command): string {
  const actions = [
    ...(words.length > 0 ? [`compadd -- ${words.join(' ')}`] : []),
    ...(takesFiles ? ['_files'] : []),
  ];
  return `    ${name}) ${actions.join('; ')} ;;`;
}

function fish(): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const isFirst = 'test (count (commandline -opc)) -eq 1';
  const after = (name: string) =>
    `test (count (commandline -opc)) -gt 1; and test (commandline -opc)[2] = ${name}`;
  const lines = commands.flatMap(({ name, help, words = [], takesFiles }) => [
    `complete -c ringwise -n ${quoted(isFirst)} -a ${name} -d ${quoted(help)}`,
    ...(name === 'run' || takesFiles ? [] : [`complete -c ringwise -f -n ${quoted(after(name))}`]),
    ...(words.length > 0
      ? [`complete -c ringwise -n ${quoted(after(name))} -a ${quoted(words.join(' '))}`]
      : []),
  ]);
  const runs = commands.filter(({ name }) => name !== 'run').map(({ name }) => name);
  return `# fish completion for ringwise
function __ringwise_in_flags
    # Succeeds before the script: the first word that is neither a flag nor a flag's value.
    set -l words (commandline -opc)[2..-1]
    contains -- "$words[1]" ${runs.join(' ')}; and return 1
    test "$words[1]" = run; and set -e words[1]
    while test (count $words) -gt 0
        switch $words[1]
            case ${withWord.flatMap(wordsOf).join(' ')}
                set -e words[1]
            case '-*'
            case '*'
                return 1
        end
        set -e words[1]
    end
end
${lines.join('\n')}
${allFlags.map((flag) => `complete -c ringwise -n __ringwise_in_flags ${fishFlag(flag, quoted)}`).join('\n')}
`;
}

function fishFlag(flag: Flag, quoted: (text: string) => string): string {
  const parts = [`-l ${flag.name}`, ...(flag.short ? [`-s ${flag.short}`] : [])];
  if (flag.value && !flag.isValueOptional) {
    if (flag.choices) parts.push(`-x -a ${quoted(flag.choices.join(' '))}`);
    else if (takesFolder(flag)) parts.push(`-x -a '(__fish_complete_directories)'`);
    else parts.push(takesFile(flag) ? '-r -F' : '-x');
  }
  return [...parts, `-d ${quoted(flag.help)}`].join(' ');
}
