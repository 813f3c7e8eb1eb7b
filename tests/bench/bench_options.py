# SPDX-License-Identifier: Apache-2.0
"""bench_options.py: what scripts here say of themselves, which is the text at their heads.

That text begins with how a script is called.  `--help` prints it and does nothing else.
"""
import argparse
import sys


def usage(text):
    return f'usage: {text.strip()}\n'


def answer_help(text):
    """Before anything is done or looked for: ends the script if that is all that is wanted."""
    if '--help' in sys.argv[1:]:
        sys.stdout.write(usage(text))
        sys.exit(0)


class Parser(argparse.ArgumentParser):
    """Shows the text as it is: argparse takes a % for a place to fill in."""

    def __init__(self, text):
        super().__init__(add_help=False)
        self.text = text

    def format_usage(self):
        return usage(self.text)

    def format_help(self):
        return usage(self.text)

    def parse_args(self, *arguments, **named):
        answer_help(self.text)
        return super().parse_args(*arguments, **named)
