#!/usr/bin/env python3
"""Tests reference.py on declarations as headers have them."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference  # noqa: E402


def told(text, only=None):
    """Signatures and texts of the functions in a body."""
    return reference.functions(reference.members(text.splitlines()), only)


class Reference(unittest.TestCase):
    def test_body_of_a_constructor(self):
        self.assertEqual(told("  /// Bytes become numbers.\n  explicit A(B b, int n = 1) : b_(std::move(b)), n_{n} {\n    check();\n  }\n"),
                         [(["explicit A(B b, int n = 1)"], "Bytes become numbers.\n")])

    def test_next_docstring_is_not_code(self):
        found = told("  /// One.\n  virtual void one(std::span<const int>) const {}\n  /// Two.\n  virtual bool two() const = 0;\n")
        self.assertEqual(found, [(["virtual void one(std::span<const int>) const"], "One.\n"), (["virtual bool two() const = 0"], "Two.\n")])

    def test_deleted_is_no_function_and_no_field(self):
        body = reference.members(["  A(const A&) = delete;", "  A& operator=(const A&) = delete;"])
        self.assertEqual((reference.functions(body), reference.field_rows(body)), ([], []))

    def test_overloads_stand_together(self):
        body = ("  /// A step.\n  R step(const S& source, const L& labels) { return f(source); }\n  template <class S>\n"
                "    requires requires(const S& s) { s.labels(); }\n  R step(const S& batch) {\n    return f(batch);\n  }\n  int other() const { return 1; }\n")
        self.assertEqual(told(body), [(["R step(const S& source, const L& labels)", "R step(const S& batch)"], "A step.\n")])

    def test_free_function_with_template(self):
        found = told("/// Bytes.\ntemplate <class Net, class B = void>\n  requires(sizeof(Net) > 1)\nconstexpr Index bytes(const Input& input = {}) {\n  return 0;\n}\n",
                     "bytes")
        self.assertEqual(found, [(["template <class Net, class B = void> Index bytes(const Input& input = {})"], "Bytes.\n")])

    def test_private_is_left_out(self):
        self.assertEqual(told(" public:\n  /// A.\n  int a();\n\n private:\n  /// B.\n  int b();\n"), [(["int a()"], "A.\n")])

    def test_fields(self):
        rows = reference.field_rows(reference.members([
            "  Index n = 1;   ///< so many,", "                 ///< or more", "  /// Called.", "  std::function<void(int)> told{};",
            "  bool (*pays)(Index rows) = nullptr;   ///< or not", "  Index h = 0, w = 2;", "  static constexpr int none = 1;"]))
        self.assertEqual(rows, ["| `n` | `Index`, `1` | so many, or more |", "| `told` | `std::function<void(int)>` | Called. |",
                                "| `pays` | `bool (*)(Index rows)`, `nullptr` | or not |", "| `h` | `Index`, `0` |  |", "| `w` | `Index`, `2` |  |"])

    def test_docstrings(self):
        self.assertEqual(reference.text_of(["Text", "goes on.", "    code(1);", "Errors:  one,", "         two"]),
                         "Text goes on.\n\n```\ncode(1);\n```\n- Errors: one, two\n")
        with self.assertRaisesRegex(reference.Stop, "indent it"):
            reference.text_of(["WARNING: slabs that are", "not the others"])

    def test_signature_with_code_is_refused(self):
        for signature in ("void f() {}", "A() : b_(1)", "void f() /// Next.", "int f() { return 1; }"):
            with self.assertRaisesRegex(reference.Stop, "more than a declaration"):
                reference.listed_functions([([signature], "")])

    def test_what_pages_use_is_listed(self):
        page = reference.PAGE
        for lacking in ("peak_bytes()", "Dataset"):   # a function, a type
            reference.PAGE = [(title, [entry for entry in entries if entry[1] != lacking]) for title, entries in page]
            self.assertEqual(list(reference.unlisted()), [lacking])
        reference.PAGE = page


if __name__ == "__main__":
    unittest.main()
