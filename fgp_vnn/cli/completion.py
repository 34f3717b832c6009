"""fgp-vnn completion: a script that lets a shell complete commands and options."""

from __future__ import annotations

import argparse

EXAMPLE = 'eval "$(fgp-vnn completion bash)"'
SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="shell that the script is for")


def run(args: argparse.Namespace) -> int:
    from fgp_vnn.cli.main import whole_parser

    print(script(args.shell, options_of(whole_parser())))
    return 0


def options_of(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """The options of each command."""
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {
        name: sorted(option for action in command._actions for option in action.option_strings)
        for name, command in commands.choices.items()
    }


def script(shell: str, options: dict[str, list[str]]) -> str:
    """The script for a shell. The first word is completed to a command, later words to options of
    that command or to files."""
    names = " ".join(options)
    if shell == "fish":
        lines = [f"complete -c fgp-vnn -n __fish_use_subcommand -f -a '{names}'"]
        for name, own in options.items():
            long = [option[2:] for option in own if option.startswith("--")]
            seen = f"__fish_seen_subcommand_from {name}"
            lines += [f"complete -c fgp-vnn -n '{seen}' -l {option}" for option in long]
        return "\n".join(lines)
    cases = "\n".join(
        f"        {name}) words='{' '.join(own)}' ;;" for name, own in options.items()
    )
    bash = f"""_fgp_vnn() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} words=''
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{names} --help --version' -- "$current"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    case $current in
        -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
        *) COMPREPLY=($(compgen -f -- "$current")) ;;
    esac
}}
complete -o filenames -F _fgp_vnn fgp-vnn"""
    return bash if shell == "bash" else f"autoload -U bashcompinit && bashcompinit\n{bash}"
