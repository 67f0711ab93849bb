"""The public API, as testdata/api.txt lists it: each public name with its signature.

A change of the API changes that file, so that a review sees it. UPDATE_API=1 rewrites the file.
"""

import ast
import os
import pathlib
import unittest

import hookloop
import hookloop.crd
import hookloop.testing

ROOT = pathlib.Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "testdata" / "api.txt"
GENERATED = ("pb2", "protobuf", "grpc")


def module_file(name):
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def statements(module):
    """Returns the statements of a module that define a name."""
    tree = ast.parse(module_file(module).read_text(encoding="utf-8"))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: node for alias in node.names}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


def definition(module, name):
    """Returns the module and the statement that define a public name."""
    node = statements(module)[name]
    return definition(node.module, name) if isinstance(node, ast.ImportFrom) else (module, node)


def describe(module, name, node):
    """Returns the lines of a public name."""
    if isinstance(node, ast.Assign):
        return [f"{name} = {ast.unparse(node.value)}"]
    if isinstance(node, ast.FunctionDef):
        return [function(node)]
    bases = [ast.unparse(base) for base in (*node.bases, *node.keywords)]
    decorators = [f"@{ast.unparse(decorator)} " for decorator in node.decorator_list]
    head = f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    return [
        "".join(decorators) + head,
        *(f"    {line}" for line in inherited(module, node)),
        *(f"    {line}" for line in members(node)),
    ]


def inherited(module, node):
    """Returns the fields that a class has from private base classes."""
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id.startswith("_"):
            parent = statements(module)[base.id]
            optional = any(keyword.arg == "total" for keyword in parent.keywords)
            for line in members(parent):
                yield line if optional else f"{line}  # required"


def members(node):
    for each in node.body:
        if isinstance(each, (ast.AnnAssign, ast.Assign)):
            yield ast.unparse(each)
        elif isinstance(each, ast.FunctionDef) and (
            each.name == "__init__" or not each.name.startswith("_")
        ):
            yield function(each)


def function(node):
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}"


def listing():
    lines = []
    for package in (hookloop, hookloop.crd, hookloop.testing):
        lines.append(f"# {package.__name__}")
        for name in package.__all__:
            module, node = definition(package.__name__, name)
            lines.extend(describe(module, name, node))
        lines.append("")
    return "\n".join(lines)


class API(unittest.TestCase):
    maxDiff = None

    def test_the_listed_api_is_the_public_api(self):
        actual = listing()
        if os.environ.get("UPDATE_API"):
            GOLDEN.write_text(actual, encoding="utf-8")
        golden = GOLDEN.read_text(encoding="utf-8")
        self.assertEqual(actual, golden, "run the tests with UPDATE_API=1 if the change is meant")

    def test_no_signature_has_a_generated_type(self):
        for line in listing().splitlines():
            for word in GENERATED:
                self.assertNotIn(word, line)

    def test_every_public_name_has_a_docstring(self):
        for module in (hookloop, hookloop.crd, hookloop.testing):
            for name in module.__all__:
                _, node = definition(module.__name__, name)
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.assertTrue(ast.get_docstring(node), name)

    def test_names_are_sorted(self):
        for module in (hookloop, hookloop.crd, hookloop.testing):
            self.assertEqual(module.__all__, sorted(module.__all__))
