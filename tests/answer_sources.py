"""Checks are given functions of tests, whose source is no notebook's."""

import ast
import linecache
from contextlib import contextmanager
from unittest.mock import patch

from cypresskit.session import running_shell
from cypresskit.teach import check
from cypresskit.teach.answer_source import AnswerSource, find_source


def find_function(function, name):
    """The source of a notebook's answer; outside of a notebook that of a function in a file: its
    text, after the other statements of the file.
    """
    if running_shell():
        return find_source(function, name)
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename))
    tree = ast.parse(text)
    cells = [ast.get_source_segment(text, statement) for statement in tree.body]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno == code.co_firstlineno:
            return AnswerSource([*cells, ast.unparse(node)], node.name)
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            constants = compile(ast.Expression(node), "", "eval").co_consts
            made = [each for each in constants if hasattr(each, "co_names")][-1]
            if (made.co_names, made.co_varnames) == (code.co_names, code.co_varnames):
                return AnswerSource([*cells, f"it = {ast.unparse(node)}"], "it")
    raise ValueError("its file isn't there")


@contextmanager
def answers_of_tests():
    """Meanwhile checks take functions of tests, and give them ten times as long: a busy computer is
    no mistake.
    """
    longer = patch.object(check, "SECONDS", 10 * check.SECONDS)
    with patch.object(check, "find_source", find_function), longer:
        yield
